"""States as a graph: names, targets, reachable states, and an end.

The order is AWS's: first targets that do not exist, then either a missing end or unreachable
states.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

from holdfast.asl.validation.report import RuleScope
from holdfast.limits import NAME_CHARACTERS_MAX

_MISSING: Final = "MISSING_TRANSITION_TARGET"
_PROCESSORS: Final = ("ItemProcessor", "Iterator")


def check_graph(scope: RuleScope, machine: Mapping[str, Any], *, is_to_run: bool) -> None:
    """Report every problem of names and transitions in a definition whose fields were already
    checked.

    With `is_to_run` an unreachable state, and a machine that never ends, are no problems: it can
    run.
    """
    levels = list(_levels(machine, ""))
    _check_names(scope, levels)
    undone = list(_extension_targets(machine))
    names = {name for level, _ in levels for name in level["States"]}
    _check_known(scope, undone, names)
    for name, place in _extension_members(machine):
        if name not in names:
            scope.refuse(place, f"The definition has no state '{name}'")
    for level, path in levels:
        _check_targets(scope, level, path)
        if not is_to_run:
            _check_flow(scope, level, path, [name for name, _ in undone])


_EXTENSION_NAMES: Final = {"Undo": ("Begin", "End"), "Deadlines": ("Begin", "Next")}


def _extension_targets(machine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the states at which the flow may begin because of the extension `Holdfast`, each with
    its place.
    """
    extension = machine.get("Holdfast")
    for kind, keys in _EXTENSION_NAMES.items():
        parts = extension.get(kind) if isinstance(extension, dict) else None
        for number, part in enumerate(parts if isinstance(parts, list) else ()):
            for key in keys:
                if isinstance(part, dict) and isinstance(part.get(key), str):
                    yield part[key], f"/Holdfast/{kind}[{number}]/{key}"


def _extension_members(machine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the states that the extension `Holdfast` lists. A misspelt name must be reported;
    otherwise the extension would apply to no state.
    """
    extension = machine.get("Holdfast")
    if not isinstance(extension, dict):
        return
    for kind in _EXTENSION_NAMES:
        for number, part in enumerate(_list(extension.get(kind))):
            if isinstance(part, dict):
                yield from _named(part.get("States"), f"/Holdfast/{kind}[{number}]/States")
    for number, part in enumerate(_list(extension.get("Shielded"))):
        yield from _named(part, f"/Holdfast/Shielded[{number}]")


def _named(value: Any, path: str) -> Iterator[tuple[str, str]]:
    for number, name in enumerate(_list(value)):
        if isinstance(name, str):
            yield name, f"{path}[{number}]"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _check_flow(
    scope: RuleScope, level: Mapping[str, Any], path: str, entries: Iterable[str]
) -> None:
    """Check the flow of one level. Only the outermost level needs an end. If it has none, AWS
    reports no other problem of the flow.
    """
    if not path and not any(_is_terminal(state) for state in level["States"].values()):
        scope.refuse(None, "Workflow has no terminal state", "MISSING_END_STATE")
    else:
        _check_reach(scope, level, path, entries)


def _levels(machine: Mapping[str, Any], path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield every {"StartAt", "States"} that can be checked, with its path; outer ones first."""
    states = machine.get("States")
    if not isinstance(states, dict) or not isinstance(machine.get("StartAt"), str):
        return
    yield machine, path
    for name, state in states.items():
        if isinstance(state, dict):
            for inner, where in inner_machines(state, f"{path}/States/{name}"):
                yield from _levels(inner, where)


def inner_machines(state: Mapping[str, Any], path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the branches of a Parallel and the processor of a Map, as far as they are objects."""
    branches = state.get("Branches")
    for number, branch in enumerate(branches if isinstance(branches, list) else ()):
        if isinstance(branch, dict):
            yield branch, f"{path}/Branches[{number}]"
    for key in _PROCESSORS:
        processor = state.get(key)
        if isinstance(processor, dict):
            yield processor, f"{path}/{key}"


def _check_names(scope: RuleScope, levels: list[tuple[Mapping[str, Any], str]]) -> None:
    names, labels = set[str](), set[str]()
    for level, path in levels:
        for name, state in level["States"].items():
            place = f"{path}/States/{name}"
            if name in names:
                scope.refuse(place, f"Duplicate State name: {name}", "DUPLICATE_STATE_NAME")
            names.add(name)
            _check_name(scope, name, place)
            label = state.get("Label") if isinstance(state, dict) else None
            if isinstance(label, str):
                if label in labels:
                    message = f"Duplicate Label name: {label}"
                    scope.refuse(f"{place}/Label", message, "DUPLICATE_LABEL_NAME")
                labels.add(label)


def _check_name(scope: RuleScope, name: str, place: str) -> None:
    code = "INVALID_STATE_NAME"
    if not name:
        scope.refuse(place, "Invalid State name: State name cannot be empty", code)
    if len(name) > NAME_CHARACTERS_MAX:
        limit = f"the {NAME_CHARACTERS_MAX}-character limit allowed by the service"
        scope.refuse(place, f"Invalid State name: State '{name}' exceeds {limit}", code)


def _check_targets(scope: RuleScope, level: Mapping[str, Any], path: str) -> None:
    states = level["States"]
    targets = [(level["StartAt"], f"{path}/StartAt")]
    for name, state in states.items():
        targets += transitions(state, f"{path}/States/{name}")
    _check_known(scope, targets, states)


def _check_known(
    scope: RuleScope, targets: Iterable[tuple[str, str]], names: Container[str]
) -> None:
    for target, place in targets:
        if target not in names:
            scope.refuse(place, f"Missing 'Next' target: {target}", _MISSING)


def transitions(state: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the names of the next states of a state, each with its place."""
    if not isinstance(state, dict):
        return
    for key in ("Next", "Default"):
        if isinstance(state.get(key), str):
            yield state[key], f"{path}/{key}"
    for key in ("Choices", "Catch"):
        items = state.get(key)
        for number, item in enumerate(items if isinstance(items, list) else ()):
            if isinstance(item, dict) and isinstance(item.get("Next"), str):
                yield item["Next"], f"{path}/{key}[{number}]/Next"


def _is_terminal(state: Any) -> bool:
    """Return True for an end. A value that cannot be read as a state counts, so that it does not
    cause a second report, which would be wrong.
    """
    if not isinstance(state, dict):
        return True
    return state.get("End") is True or state.get("Type") in ("Succeed", "Fail")


def _check_reach(
    scope: RuleScope, level: Mapping[str, Any], path: str, entries: Iterable[str]
) -> None:
    """Report unreachable states. `entries` are names, other than the first state's, at which the
    flow may begin.
    """
    states = level["States"]
    reached, pending = set[str](), [level["StartAt"], *entries]
    while pending:
        name = pending.pop()
        if name in states and name not in reached:
            reached.add(name)
            pending += [target for target, _ in transitions(states[name], "")]
    for name in states:
        if name not in reached:
            place = f"{path}/States/{name}"
            scope.refuse(place, f'State "{name}" is not reachable.', _MISSING)
