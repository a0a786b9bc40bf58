"""Migration of one execution: it goes on with another definition, from where it stands.

Rules of this file (docs/explanation/migration.md shows them):
* The proof is made before the request is stored, because it reads two whole definitions. The
  request names the visits of states that the proof was made for. If one of them has ended since,
  the request leaves no trace: the execution stays whole on the definition it has.
* One event moves the whole execution, or nothing does.
* The event opens and closes no wait. Entries, due times and tokens stay, so every registration,
  timer, question and lease that was made before is still the one that the state asks for.
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
    """Return True when the execution still stands where the proof was made."""
    if state.is_ended or fact.control_id <= state.last_control or state.stopping is not None:
        return False
    return state.definition == fact.source and visits(state) == fact.visits


def visits(state: Execution) -> dict[str, int]:
    """Return the event that entered the state of each frame."""
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
    """Return the pending commands of the state, as the migrations among the events rename them.

    A worker carries out the commands that are not among these. The renamed task of a waiting retry
    would otherwise count as a new command, and its second wake would run the retry twice. A command
    that the same events asked for before the migration is not among these: it is new.
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
    """Return what a migration leaves of the command: the entry of an attempt, whose task may get
    another name, or the command itself.
    """
    return command.attempt.entry if isinstance(command, RunAttempt) else command


def keeps_key(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True when an execution of one definition may go on with the other, by the keys in
    their source maps: the events that are addressed to it and its place among the executions of
    its key must stay its own.
    """
    before, after = old.get("keyed"), new.get("keyed")
    if before is None:
        return True
    if after is None or before["parameter"] != after["parameter"]:
        return False
    return before.get("starts_on") in (None, after.get("starts_on"))
