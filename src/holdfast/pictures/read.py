"""A definition, and the map of where it was written, read into a drawing.

It is read more leniently than it is run: what a picture does not need may be missing or wrong. What
it needs is checked, and refused with the place in the definition (HF104).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from holdfast.asl.json_text import DEPTH_MAX, depth_of
from holdfast.asl.program import Json
from holdfast.errors import WorkflowError
from holdfast.pictures.edges import edges_of
from holdfast.pictures.model import (
    Drawing,
    DrawnDefinition,
    DrawnSource,
    DrawnState,
    NodeKind,
    Role,
)
from holdfast.pictures.roles import DrawnMachine, Extension, extension_of, roles_of
from holdfast.pictures.wording import (
    amount,
    duration,
    is_query,
    kind_of,
    plain,
    resource,
    retries,
    unguarded,
)

_TYPES: Final = "Task, Pass, Choice, Wait, Parallel, Map, Succeed or Fail"


@dataclass(frozen=True, slots=True)
class DrawnLimits:
    """The limits of the code, as a person reads them: of each task by its name, and of the workflow
    that is drawn.
    """

    of_task: Mapping[str, tuple[str, ...]]
    of_workflow: tuple[str, ...]


NO_DRAWN_LIMITS: Final = DrawnLimits({}, ())


def read_drawing(
    definition: Json,
    source_map: Json = None,
    title: str = "",
    limits: DrawnLimits = NO_DRAWN_LIMITS,
) -> Drawing:
    """Read the drawing of a definition. With an empty `title` the picture has the definition's
    Comment as its title. Raises WorkflowError HF104.
    """
    if depth_of(definition) > DEPTH_MAX:
        _refuse("/", f"is nested deeper than {DEPTH_MAX} levels", "flatten it")
    top = _checked(definition, "", set())
    levels = tuple(_levels(top))
    extension = extension_of(levels)
    roles = roles_of(levels, extension)
    reader = _Reader(_sources(source_map), extension, roles, limits.of_task)
    named = title or str(top.get("Comment") or "") or "state machine"
    remarks = (*_remarks(top), *(f"limit {limit}" for limit in limits.of_workflow))
    return Drawing(named, remarks, reader.machine(top))


def _remarks(top: Mapping[str, Any]) -> Iterator[str]:
    yield str(top.get("QueryLanguage", "JSONPath"))
    if "TimeoutSeconds" in top:
        yield f"at most {duration(top['TimeoutSeconds'])}"


# -- required parts of a definition ----------------------------------------------------------------


def _checked(machine: Any, place: str, taken: set[str]) -> Mapping[str, Any]:
    """Return the machine at `place`, after checking that every drawn part exists."""
    if not isinstance(machine, dict):
        _refuse(place or "/", f"is {_said(machine)}", "a state machine is an object")
    states = machine.get("States")
    if not isinstance(states, dict) or not states:
        _refuse(f"{place}/States", f"is {_said(states)}", "name at least one state")
    if not _is_one(machine.get("StartAt"), states):
        found = _said(machine.get("StartAt"))
        _refuse(f"{place}/StartAt", f"is {found}", f"name a state, such as {_first(states)}")
    for name, state in states.items():
        here = f"{place}/States/{name}"
        if name in taken:
            _refuse(here, "has a name that is taken", "names are unique in the whole definition")
        taken.add(name)
        _check_state(state, here, states)
        for inner, below in _inner(state, here):
            _checked(inner, below, taken)
    return machine


def _check_state(state: Any, place: str, states: Mapping[str, Any]) -> None:
    if not isinstance(state, dict):
        _refuse(place, f"is {_said(state)}", "a state is an object")
    if kind_of(state) is None:
        _refuse(f"{place}/Type", f"is {_said(state.get('Type'))}", f"write {_TYPES}")
    rules = [("", state)]
    for field in ("Choices", "Catch"):
        listed = state.get(field, [])
        if not isinstance(listed, list) or not all(isinstance(rule, dict) for rule in listed):
            _refuse(f"{place}/{field}", f"is {_said(listed)}", "write a list of objects")
        rules += [(f"/{field}[{n}]", rule) for n, rule in enumerate(listed)]
    for below, rule in rules:
        for field in ("Next", "Default"):
            if field in rule and not _is_one(rule[field], states):
                found = f"is {_said(rule[field])}"
                _refuse(f"{place}{below}/{field}", found, f"name a state of {', '.join(states)}")


def _inner(state: Mapping[str, Any], place: str) -> Iterator[tuple[Any, str]]:
    if state["Type"] == "Parallel":
        branches = state.get("Branches")
        if not isinstance(branches, list) or not branches:
            _refuse(f"{place}/Branches", f"is {_said(branches)}", "write a list of state machines")
        yield from ((one, f"{place}/Branches[{n}]") for n, one in enumerate(branches))
    if state["Type"] == "Map":
        field = "Iterator" if "Iterator" in state else "ItemProcessor"
        yield state.get(field), f"{place}/{field}"


def _levels(machine: Mapping[str, Any]) -> Iterator[DrawnMachine]:
    yield DrawnMachine(machine)
    for state in machine["States"].values():
        for inner, _ in _inner(state, ""):
            yield from _levels(inner)


def _is_one(name: Any, states: Mapping[str, Any]) -> bool:
    return isinstance(name, str) and name in states


def _first(states: Mapping[str, Any]) -> str:
    return f'"{next(iter(states))}"'


def _said(value: Any) -> str:
    match value:
        case None:
            return "missing"
        case str():
            return f'"{value}"' if len(value) <= 80 else f'"{value[:80]}…"'
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            return str(value)


def _refuse(place: str, found: str, fix: str) -> NoReturn:
    raise WorkflowError("HF104", f"the definition cannot be drawn: {place} {found}", help=fix)


def _sources(source_map: Json) -> Mapping[str, DrawnSource]:
    """Return the places of the states in the source. A map that is missing or has another format
    has no places, and the picture shows none.
    """
    listed = source_map.get("sources") if isinstance(source_map, dict) else None
    return {
        name: DrawnSource(str(found["file"]), found["line"], str(found.get("text", "")))
        for name, found in (listed.items() if isinstance(listed, dict) else ())
        if isinstance(found, dict) and isinstance(found.get("line"), int) and "file" in found
    }


# -- the drawing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reader:
    sources: Mapping[str, DrawnSource]
    extension: Extension
    roles: Mapping[str, Role]
    limits: Mapping[str, tuple[str, ...]]

    def machine(self, machine: Mapping[str, Any]) -> DrawnDefinition:
        states = machine["States"]
        nodes = tuple(self._node(name, state) for name, state in states.items())
        edges = tuple(edges_of(states, self.sources, self.extension))
        return DrawnDefinition(machine["StartAt"], nodes, edges)

    def _node(self, name: str, state: Mapping[str, Any]) -> DrawnState:
        kind = kind_of(state)
        # `_check_state` has refused every state without a kind.
        assert kind is not None
        retry, retry_note = retries(state)
        notes = [note for note in (retry_note, *self._notes(name)) if note]
        limits = [f"limit {limit}" for limit in self._limits(kind, state)]
        details = [*_details(name, kind, state), retry, *limits, *self._badges(name)]
        return DrawnState(
            name,
            kind,
            self.roles[name],
            kind in {"succeed", "fail"} or state.get("End") is True,
            tuple(detail for detail in details if detail),
            tuple(notes),
            self.sources.get(name),
            tuple(self.machine(inner) for inner, _ in _inner(state, "")),
            _after(state),
        )

    def _limits(self, kind: NodeKind, state: Mapping[str, Any]) -> tuple[str, ...]:
        return self.limits.get(resource(state), ()) if kind == "task" else ()

    def _badges(self, name: str) -> Iterator[str]:
        for deadline in self.extension.deadlines:
            if deadline.begin == name:
                yield f"deadline {deadline.after}"
        if any(name in part for part in self.extension.shielded):
            yield "shielded"

    def _notes(self, name: str) -> Iterator[str]:
        for undo in self.extension.undos:
            if name in undo.states:
                yield f"When it is cancelled here: {undo.begin}"
        for deadline in self.extension.deadlines:
            if name in deadline.states:
                yield f"Has to be over {deadline.after} after: {deadline.begin}"
        if any(name in part for part in self.extension.shielded):
            yield "A cancellation waits until this part is left"


def _details(name: str, kind: NodeKind, state: Mapping[str, Any]) -> Iterator[str]:
    match kind:
        case "task" | "pure" | "child":
            called = resource(state)
            yield called if called not in name else ""
        case "event":
            yield _event(name, state)
        case "wait":
            yield _waiting(state)
        case "fail":
            yield plain(state["Error"]) if "Error" in state else ""
        case "parallel" | "map":
            yield from _lines(kind, state)
        case _:
            pass
    limit = state.get("TimeoutSeconds", state.get("TimeoutSecondsPath"))
    if limit is not None:
        yield f"up to {duration(limit)}"


def _event(name: str, state: Mapping[str, Any]) -> str:
    given = state.get("Arguments")
    event = plain(given["event"]) if isinstance(given, dict) and "event" in given else ""
    return event if event not in name else ""


def _waiting(state: Mapping[str, Any]) -> str:
    for field in ("Seconds", "SecondsPath"):
        if field in state:
            return duration(state[field])
    until = state.get("Timestamp", state.get("TimestampPath"))
    if until is None:
        return ""
    moment = unguarded(until)
    return f"until {'a computed time' if is_query(moment) else moment}"


def _lines(kind: NodeKind, state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the number of lines of control, how many must succeed, and how many may fail."""
    if kind == "map":
        config = state.get("ItemProcessor")
        if isinstance(config, dict) and isinstance(config.get("ProcessorConfig"), dict):
            is_run = config["ProcessorConfig"].get("Mode") == "DISTRIBUTED"
            yield "distributed" if is_run else ""
        limit = state.get("MaxConcurrency", 0)
        yield f"{amount(limit)} at a time" if limit != 0 else ""
    found = state.get("Holdfast")
    marked = found if isinstance(found, dict) else {}
    needed, tolerated = marked.get("Needed"), marked.get("Tolerated", 0)
    if needed == 1 and tolerated == 0 and kind == "parallel":
        yield "the first to end decides"
        return
    if needed is not None:
        of = f" of {len(state['Branches'])}" if kind == "parallel" else ""
        yield f"at least {amount(needed)}{of}"
    for field, sign in (("ToleratedFailureCount", ""), ("ToleratedFailurePercentage", " %")):
        if field in state:
            yield f"tolerates {plain(state[field])}{sign} failures"
    if marked.get("ReturnErrors") is True:
        yield "errors are results"
    if tolerated != 0 and not unguarded(tolerated).endswith(f" - {unguarded(needed)}"):
        yield f"tolerates {amount(tolerated, 'failures')}"


def _after(state: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    """Return the branches that each branch waits for. A branch can only wait for an earlier one;
    others are not drawn.
    """
    found = state.get("Holdfast")
    listed = found.get("After") if isinstance(found, dict) else None
    if state["Type"] != "Parallel" or not isinstance(listed, list):
        return ()
    lines = len(state["Branches"])
    return tuple(
        tuple(n for n in waits if isinstance(n, int) and 0 <= n < lines and n != line)
        for line, waits in enumerate(listed[:lines])
        if isinstance(waits, list)
    )
