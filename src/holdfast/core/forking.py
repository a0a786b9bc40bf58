"""Forks: a new execution that begins with a copy of another execution's history, up to a step.

Rules of this file (docs/explanation/repair.md shows them):
* The events of the origin are copied unchanged. So the fork has the origin's step results,
  variables and event ids.
* `ExecutionForked` follows the copied events and makes the execution a new one: its time-out counts
  from now, the deadlines of the blocks around the step start again, and children, pauses and
  requests of the origin do not belong to it.
* `Migrated` follows that event when the fork continues on another definition. The proof of the
  move is made before the start message is sent, for the step as one that runs from its beginning.
* A fork begins at a step of the main line, outside of every Parallel and Map. So no branch of the
  origin is open there, and nothing else was running.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from holdfast.core import cancelling
from holdfast.core.apply.apply import fold
from holdfast.core.decision import Decision
from holdfast.core.events import Event
from holdfast.core.facts import Forked, ForkMove, Started
from holdfast.core.state import ROOT, Execution

#: Fields of the origin's start event that the fork replaces by its own or does not have.
_OWN: Final = frozenset({"run", "name", "parent", "due"})


def entries(events: Sequence[Event]) -> dict[str, int]:
    """Return the states of the main line at which a fork may begin, each with the index of the
    event that entered it last.
    """
    return {
        event.details["name"]: place
        for place, event in enumerate(events)
        if event.type.endswith("StateEntered") and "frame" not in event.holdfast
    }


def begin_of(events: Sequence[Event], event_id: int) -> int | None:
    """Return the index of the last event that a fork at a step copies; None when there is no such
    step. `event_id` is the id of the event that entered the step.

    If the execution itself began as a fork at that step, `ExecutionForked` and the deadlines after
    it are copied, too: they hold the input and variables that the fork was given, and the blocks
    around the step.
    """
    found, is_forked = None, False
    for place, event in enumerate(events):
        if event.type == "ExecutionForked":
            is_forked = event.holdfast["of"]["event"] == event_id
        elif event.type != "DeadlineSet":
            is_forked = False
        if is_forked or event.id == event_id:
            found = place
    return found


def base(events: Iterable[Event]) -> Execution:
    """Return the state of the origin after these events."""
    state = fold(events)
    assert state is not None
    return state


def fork(decision: Decision, fact: Forked) -> None:
    if decision.is_started:
        return
    for event in _copied(fact.events, fact.started):
        decision.replay(event)
    own: dict[str, Any] = {"of": dict(fact.of), "reason": fact.reason, "by": fact.by}
    seconds = decision.program.timeout_seconds
    if seconds is not None:
        own["due"] = fact.started.started_ms + seconds * 1_000
    details: dict[str, Any] = {}
    if fact.data is not None:
        details["input"] = fact.data[0]
    if fact.variables:
        details["assignedVariables"] = dict(fact.variables)
    deadlines = decision.frame(ROOT).deadlines
    decision.emit("ExecutionForked", details=details, at_ms=fact.started.started_ms, **own)
    for due in deadlines:
        cancelling.set_deadline(decision, ROOT, due.number, due.seconds)
    if fact.move is not None:
        _move(decision, fact, fact.move)
    decision.entered.append(ROOT)


def _move(decision: Decision, fact: Forked, move: ForkMove) -> None:
    """Record the move of the fork to another definition. This event comes before the first step of
    the fork, so the step runs with the new definition.
    """
    own: dict[str, Any] = {
        "control": decision.state.last_control,
        "from": move.source,
        "to": move.target,
        "reason": fact.reason,
        "by": fact.by,
    }
    decision.emit("Migrated", plan=dict(move.plan), **own)
    decision.go_on_with(move.program)


def _copied(events: Sequence[Event], started: Started) -> Iterator[Event]:
    first = events[0]
    kept = {name: value for name, value in first.holdfast.items() if name not in _OWN}
    named = {} if started.name is None else {"name": started.name}
    yield first._replace(holdfast={**kept, "run": started.run, **named})
    for event in events[1:]:
        # Leave out `Opened`, which says that the origin has an entry in the list of executions. The
        # fork gets its own entry together with an event `Opened` of its own.
        if event.type != "Opened":
            yield event
