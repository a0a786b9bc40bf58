"""The fields with the name `Holdfast`, which AWS does not know: see
docs/reference/extensions.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from holdfast.asl.documents import StateJson
from holdfast.asl.program import (
    CUTS_STEPS,
    BlockDeadline,
    ChoiceState,
    PollRule,
    Quorum,
    State,
    UndoRule,
)
from holdfast.asl.template import Template, compile_template

Extensions: TypeAlias = tuple[
    tuple[UndoRule, ...], tuple[BlockDeadline, ...], tuple[frozenset[str], ...]
]
_QUORUM: Final = frozenset({"Needed", "Tolerated", "ReturnErrors"})


def read_extensions(machine: StateJson, states: Mapping[str, State]) -> Extensions:
    extension = machine.get("Holdfast", {})
    shielded = tuple(frozenset(names) for names in extension.get("Shielded", ()))
    return (
        tuple(_undo(undo, states, shielded) for undo in extension.get("Undo", ())),
        tuple(_deadline(deadline) for deadline in extension.get("Deadlines", ())),
        shielded,
    )


def read_quorum(state: StateJson, where: str) -> Quorum | None:
    extension = state.get("Holdfast", {})
    if extension.keys().isdisjoint(_QUORUM):
        return None
    needed, tolerated = (_template(extension, name, where) for name in ("Needed", "Tolerated"))
    return Quorum(needed, tolerated, extension.get("ReturnErrors", False))


def read_after(state: StateJson) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(earlier) for earlier in state.get("Holdfast", {}).get("After", ()))


def read_publish(state: StateJson, where: str) -> Template | None:
    return _template(state.get("Holdfast", {}), "Publish", where)


def read_poll(state: StateJson) -> PollRule | None:
    rule = state.get("Holdfast", {}).get("Poll")
    if rule is None:
        return None
    return PollRule(rule["Seconds"], rule["Backoff"], rule["SecondsMax"])


def read_note(state: StateJson, where: str) -> Template | None:
    return _template(state.get("Holdfast", {}), "Note", where)


def _undo(
    undo: StateJson, states: Mapping[str, State], shielded: tuple[frozenset[str], ...]
) -> UndoRule:
    """Return the rule of an undo.

    The undo of a `finally` lists its own states. They cannot be found by following the flow from
    its begin, because a `finally` also passes errors on to states outside of it.
    """
    begin, end = undo["Begin"], undo["End"]
    listed = (names for names in shielded if begin in names)
    own = _between(begin, end, states).intersection(*listed)
    return UndoRule(frozenset(undo["States"]), begin, end, _template(undo, "Assign", ""), own)


def _deadline(deadline: StateJson) -> BlockDeadline:
    return BlockDeadline(
        # Leave out the block's first state: entering it begins the block again. So a loop that
        # continues there starts a new block each time.
        states=frozenset(deadline["States"]) - {deadline["Begin"]},
        begin=deadline["Begin"],
        seconds=compile_template(deadline["Seconds"], "/Seconds"),
        next=deadline.get("Next"),
        assign=_template(deadline, "Assign", ""),
        cuts_steps_only=deadline.get("Cuts") == CUTS_STEPS,
    )


def _between(begin: str, end: str, states: Mapping[str, State]) -> frozenset[str]:
    """Return the states that the flow reaches from `begin` before `end`. The target of a Catch does
    not count.
    """
    found, pending = set[str](), [begin]
    while pending:
        name = pending.pop()
        if name not in found and name != end:
            found.add(name)
            pending += _following(states[name])
    return frozenset(found)


def _following(state: State) -> Iterable[str]:
    if isinstance(state, ChoiceState):
        yield from (rule.next for rule in state.rules)
        if state.default is not None:
            yield state.default
    following = getattr(state, "next", None)
    if following is not None:
        yield following


def _template(holder: StateJson, name: str, where: str) -> Template | None:
    return compile_template(holder[name], f"{where}/{name}") if name in holder else None
