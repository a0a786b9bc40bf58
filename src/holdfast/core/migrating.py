"""Migration of one execution: it continues with another definition, from its present place.

Rules of this file (docs/explanation/migration.md shows them):
* The proof that the migration is safe reads two whole definitions, so it is made before the request
  is stored. The request names the visits of states that the proof is about. If one of these visits
  has ended in the meantime, the request has no effect, and the execution keeps its definition.
* One event moves the whole execution. So no execution is ever moved in part.
* The event neither starts nor ends a wait. Entry numbers, due times and tokens stay, so existing
  registrations, timers, questions and leases still belong to the waits that need them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.apply.apply import apply, fold
from holdfast.core.commands import Command, RunAttempt
from holdfast.core.decision import Decision
from holdfast.core.events import Event
from holdfast.core.facts import MigrateRequested
from holdfast.core.state import Execution
from holdfast.core.waits import pending_commands


def is_open(state: Execution, fact: MigrateRequested) -> bool:
    """Return True when each frame is still in the visit of a state that the proof is about."""
    if state.is_ended or fact.control_id <= state.last_control or state.stopping is not None:
        return False
    return state.definition == fact.source and visits(state) == fact.visits


def visits(state: Execution) -> dict[str, int]:
    """Return for each frame the id of the event that entered its state."""
    return {frame.id: frame.entered_event for frame in state.frames.values()}


def migrate(decision: Decision, fact: MigrateRequested) -> None:
    if not is_open(decision.state, fact):
        return
    assert fact.program is not None
    own: dict[str, Any] = {
        "control": fact.control_id,
        "from": fact.source,
        "to": fact.target,
        "reason": fact.reason,
        "by": fact.by,
    }
    decision.emit("Migrated", plan=dict(fact.plan), **own)
    decision.go_on_with(fact.program)


def carried_out(state: Execution | None, events: Sequence[Event]) -> list[Command]:
    """Return the pending commands of the state before these events, with the names that migrations
    among the events have changed.

    A worker carries out only commands that are not in this list. Without the renaming, the renamed
    task of a waiting retry would count as a new command, and its second wake would run the retry
    twice. A command that one of these events added before the migration is not in this list, so it
    is carried out.
    """
    known = [] if state is None else pending_commands(state)
    start = 0
    for place, event in enumerate(events):
        if event.type == "Migrated":
            at_move = fold(events[start:place], state)
            assert at_move is not None
            moved = apply(at_move, event)
            places = [_place(one) for one in pending_commands(at_move) if one in known]
            known = [one for one in pending_commands(moved) if _place(one) in places]
            state, start = moved, place + 1
    return known


def _place(command: Command) -> Command | int:
    """Return what identifies the command after a migration: the entry number of an attempt, because
    the task may get another name; for other commands the command itself.
    """
    return command.attempt.entry if isinstance(command, RunAttempt) else command


def keeps_key(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True when both definitions, by their source maps, take the execution's key from the
    same input. Otherwise the execution would miss events for its key, and lose its turn among the
    executions of that key.
    """
    before, after = old.get("keyed"), new.get("keyed")
    if before is None:
        return True
    if after is None or before["parameter"] != after["parameter"]:
        return False
    return before.get("starts_on") in (None, after.get("starts_on"))
