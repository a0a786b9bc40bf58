"""Waits without a bound, and tasks without a time-out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl.documents import StateJson
from holdfast.asl.resources import POOL, is_polled
from holdfast.limits import REQUEST_SUFFIX
from holdfast.proofs.bounds import (
    ends_in_time,
    ends_that_decide,
    has_timeout,
    has_timeout_of_call,
    kind_of,
)
from holdfast.proofs.findings import ProofFinding, shortened
from holdfast.proofs.graph import GraphNode, MachineLevel, is_shielded_at, reachable

#: The kinds of tasks whose end comes from outside and may never come.
_ANSWERED: Final[Mapping[str, str]] = {
    "event": "an event",
    "ask": "an answer",
    "token": "an answer",
    "callback": "an answer to its token",
    "activity": "a worker",
}
REQUEST_RESOURCE: Final = "holdfast:request.waitForTaskToken"
#: The kinds of tasks that run code, which may never end.
_WORKING: Final = frozenset({"task", "lambda", "service"})


@dataclass(frozen=True, slots=True)
class BoundedWait:
    """One wait. `bounded_by` says what ends it without an answer; "" when nothing does."""

    level: MachineLevel
    state: str
    what: str
    bounded_by: str


def waits_of(document: Mapping[str, Any], levels: Sequence[MachineLevel]) -> list[BoundedWait]:
    """Return every task that waits for an answer from outside, or for a condition."""
    found = []
    for level, name in _tasks(levels):
        what = _awaited(level.states[name])
        if what is not None:
            found.append(BoundedWait(level, name, what, _bound(document, level, name)))
    return found


def _awaited(state: StateJson) -> str | None:
    if state["Resource"] == REQUEST_RESOURCE:
        return "a reply"
    return "a value" if is_polled(state["Resource"]) else _ANSWERED.get(kind_of(state))


def without_timeout(
    document: Mapping[str, Any], levels: Sequence[MachineLevel]
) -> list[tuple[MachineLevel, str]]:
    """Return the tasks that run code, and that nothing ends if they hang."""
    return [
        (level, name)
        for level, name in _tasks(levels)
        if kind_of(level.states[name]) in _WORKING
        and not has_timeout_of_call(level.states[name])
        and not _bound(document, level, name)
    ]


def _tasks(levels: Sequence[MachineLevel]) -> Iterator[tuple[MachineLevel, str]]:
    for level in levels:
        for name, state in level.states.items():
            if state["Type"] == "Task":
                yield level, name


def _bound(document: Mapping[str, Any], level: MachineLevel, name: str) -> str:
    if has_timeout(level.states[name]):
        return "its timeout"
    is_shielded = False
    around: tuple[MachineLevel, str] | None = (level, name)
    while around is not None:
        here, state = around
        is_shielded |= is_shielded_at(here, state)
        deadlines = here.extension.get("Deadlines", ())
        if not is_shielded and any(state in due["States"] for due in deadlines):
            return "the deadline of its block"
        if not is_shielded and _is_raced(here):
            return "another branch of its race"
        around = here.around
    if document.get("TimeoutSeconds") and not is_shielded:
        return "the timeout of the whole"
    return ""


def _is_raced(level: MachineLevel) -> bool:
    """Return True when enough of the other branches end in time, so that this one is cancelled."""
    if level.around is None:
        return False
    outer, name = level.around
    ends = ends_that_decide(outer.states[name])
    beside = [other for other in outer.inner.get(name, []) if other is not level]
    return ends is not None and sum(map(ends_in_time, beside)) >= ends


def _is_for(wait: BoundedWait, event: str | None) -> bool:
    arguments = wait.level.states[wait.state].get("Arguments")
    awaited = arguments.get("event") if isinstance(arguments, dict) else None
    # A request has the name of its event with a suffix.
    return event is not None and awaited in (event, event + REQUEST_SUFFIX)


def _is_of_conversation(wait: BoundedWait) -> bool:
    """Return True for a wait for an event that a loop repeats: each round takes the next message.
    Such a workflow waits for as long as its partner lives, so a bound would end it too early.
    """
    if kind_of(wait.level.states[wait.state]) != "event":
        return False
    around: tuple[MachineLevel, str] | None = (wait.level, wait.state)
    while around is not None:
        level, name = around
        if _is_repeated(level, name):
            return True
        around = level.around
    return False


def _is_repeated(level: MachineLevel, name: str) -> bool:
    """Return True when a way leads from the state back to it."""
    node = GraphNode(name)
    following = [edge.target for edge in level.edges if edge.source == node]
    return node in reachable(level, following)


def _help(wait: BoundedWait) -> str:
    state = wait.level.states[wait.state]
    if is_polled(state["Resource"]):
        return "`with timeout(days(3)):` around it, or @workflow(timeout=days(3))"
    if state["Resource"].startswith(POOL):
        return "@workflow(timeout=…), or `with timeout(…)`: the task's own begins on the worker"
    return f"{_call_of(state)}(…, timeout=days(3)); or @workflow(timeout=days(30))"


def _call_of(state: StateJson) -> str:
    if state["Resource"] == REQUEST_RESOURCE:
        return "request"
    if kind_of(state) == "ask":
        return "ask"
    event = (state.get("Arguments") or {}).get("event", "")
    return "receive" if str(event).endswith(REQUEST_SUFFIX) else "wait_for_event"


def _help_in_json(wait: BoundedWait) -> str:
    if kind_of(wait.level.states[wait.state]) == "activity":
        return (
            '"TimeoutSeconds" of the machine: a task\'s own begins when a worker has polled for it'
        )
    return '"TimeoutSeconds": 259200'


def find_waits(
    document: Mapping[str, Any], levels: Sequence[MachineLevel], own_event: str | None
) -> Iterator[ProofFinding]:
    """Yield the findings HF098 and HF099. `own_event` is the event that starts the workflow: such a
    workflow may wait for the next one without a bound.
    """
    for wait in waits_of(document, levels):
        if not wait.bounded_by and not _is_for(wait, own_event):
            yield ProofFinding(
                "HF098",
                "note" if _is_of_conversation(wait) else "warning",
                wait.state,
                wait.level.location(wait.state),
                f'"{wait.state}" waits for {wait.what}, and nothing bounds how long',
                _help(wait),
                _help_in_json(wait),
            )
    tasks = without_timeout(document, levels)
    if tasks:
        names = shortened([name for _, name in tasks])
        count = f"{len(tasks)} tasks have" if len(tasks) != 1 else "1 task has"
        level, first = tasks[0]
        yield ProofFinding(
            "HF099",
            "note",
            first,
            level.location(first),
            f"{count} no timeout: {names}",
            _help_without_timeout(level.states[first]),
            '"TimeoutSeconds": 60',
        )


def _help_without_timeout(state: Mapping[str, Any]) -> str:
    # A call of a service has no declaration: its timeout stands at the call.
    if kind_of(state) == "service":
        return ".options(timeout=minutes(1))(…)"
    return "@task(timeout=minutes(1))"
