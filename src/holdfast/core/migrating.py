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

from collections.abc import Sequence
from typing import Any

from holdfast.core.apply.apply import fold
from holdfast.core.decision import Decision
from holdfast.core.events import Event
from holdfast.core.facts import MigrateRequested
from holdfast.core.state import Execution


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


def after_move(state: Execution | None, events: Sequence[Event]) -> Execution | None:
    """Return the state right after the last migration among the events; the state itself when
    there is none.

    A worker compares the commands from there on. The renamed task of a waiting retry would
    otherwise count as a new command, and its second wake would run the retry twice.
    """
    moves = [place for place, event in enumerate(events) if event.type == "Migrated"]
    return fold(events[: moves[-1] + 1], state) if moves else state
