"""The roles of states: those that run without errors, those after an error, and those of
an undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from holdfast.pictures.model import Role
from holdfast.pictures.wording import duration


@dataclass(frozen=True, slots=True)
class DrawnMachine:
    """One machine of a definition: the whole, a branch, or the processor of a Map."""

    machine: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UndoPart:
    states: frozenset[str]
    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class DrawnDeadline:
    """A block's deadline. `after`: its time, in words. `next` "": no handler catches it."""

    states: frozenset[str]
    begin: str
    after: str
    next: str


@dataclass(frozen=True, slots=True)
class Extension:
    """The contents of the field `Holdfast` of all machines (docs/reference/extensions.md)."""

    undos: tuple[UndoPart, ...]
    deadlines: tuple[DrawnDeadline, ...]
    shielded: tuple[frozenset[str], ...]


def extension_of(levels: Sequence[DrawnMachine]) -> Extension:
    """Ignores wrong contents: the validator checks them, not the picture."""
    undos: list[UndoPart] = []
    deadlines: list[DrawnDeadline] = []
    shielded: list[frozenset[str]] = []
    # Only the top level of a definition has these rules. They may name states of branches, so
    # search the states of all levels.
    states = {name for level in levels for name in level.machine["States"]}
    for level in levels:
        for undo in _entries(level, "Undo"):
            if undo.get("Begin") in states:
                end = str(undo.get("End", ""))
                undos.append(UndoPart(_names(undo.get("States")), undo["Begin"], end))
        for one in _entries(level, "Deadlines"):
            target = one.get("Next")
            deadlines.append(
                DrawnDeadline(
                    _names(one.get("States")),
                    str(one.get("Begin", "")),
                    duration(one.get("Seconds")),
                    target if isinstance(target, str) and target in states else "",
                )
            )
        shielded += [_names(part) for part in _listed(level, "Shielded")]
    return Extension(tuple(undos), tuple(deadlines), tuple(shielded))


def _listed(level: DrawnMachine, field: str) -> Sequence[Any]:
    marked = level.machine.get("Holdfast")
    found = marked.get(field) if isinstance(marked, dict) else None
    return found if isinstance(found, list) else ()


def _entries(level: DrawnMachine, field: str) -> Iterator[Mapping[str, Any]]:
    yield from (entry for entry in _listed(level, field) if isinstance(entry, dict))


def _names(value: Any) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, list) else frozenset()


# -- roles -----------------------------------------------------------------------------------------


def roles_of(levels: Iterable[DrawnMachine], extension: Extension) -> Mapping[str, Role]:
    roles: dict[str, Role] = {}
    for level in levels:
        states = level.machine["States"]
        aside = _caught(states) | {undo.begin for undo in extension.undos}
        aside |= {deadline.next for deadline in extension.deadlines}
        forward = _forward(level.machine, aside)
        undoing = {
            name
            for undo in extension.undos
            if undo.begin in states
            for name in _reached(states, [undo.begin], ends={undo.end})
        }
        for name in states:
            is_undo = name in undoing and name not in forward
            roles[name] = "undo" if is_undo else "forward" if name in forward else "handler"
    return roles


def _forward(machine: Mapping[str, Any], aside: AbstractSet[str]) -> AbstractSet[str]:
    """Return the states that a run without errors can reach. A `raise` is an error, so the edge to
    its handler is not followed here.
    """
    states = machine["States"]
    found: set[str] = set()
    waiting = [machine["StartAt"]]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        on = ways_on(states[name])
        waiting += [to for to in on if not (name.startswith("raise ") and to in aside)]
    # A state to which nothing leads handles no error, so it counts as forward. Neither the start
    # nor an error or an undo leads to it.
    never = set(states) - _reached(states, [machine["StartAt"], *sorted(aside & set(states))])
    return found | never


def _reached(
    states: Mapping[str, Any], begin: Sequence[str], ends: AbstractSet[str] = frozenset()
) -> set[str]:
    found: set[str] = set()
    waiting = list(begin)
    while waiting:
        name = waiting.pop()
        if name not in found and name not in ends:
            found.add(name)
            waiting += ways_on(states[name])
    return found


def ways_on(state: Mapping[str, Any]) -> list[str]:
    """Return the next states without an error, in the order of the rules."""
    rules = [rule["Next"] for rule in state.get("Choices", ()) if "Next" in rule]
    return [*rules, *(state[field] for field in ("Next", "Default") if field in state)]


def _caught(states: Mapping[str, Any]) -> set[str]:
    return {
        catcher["Next"]
        for state in states.values()
        for catcher in state.get("Catch", ())
        if "Next" in catcher
    }
