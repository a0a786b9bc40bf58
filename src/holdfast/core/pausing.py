"""Pause and resume of one execution, as the operator asks for them.

Rules of this file (docs/explanation/waits.md shows them with times):
* A paused execution applies facts, evaluates no state and asks for no command that begins
  something. A result that arrives is recorded; the state after it is entered, and rests there.
* A stop lifts the pause: what is open has to be undone. So does the execution's own time-out, where
  the pause lets the timers run.
* A request that does not fit leaves no trace: a second pause, a resume of an execution that is not
  paused, a pause of one that is being stopped or has ended.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.decision import Decision
from holdfast.core.facts import PauseRequested, ResumeRequested
from holdfast.core.state import Execution

#: `by` and `reason` of a resume that the engine itself causes, without an operator.
BY_ENGINE = "holdfast"
STOPPED = "the execution is stopped"
TIMED_OUT = "the time of the execution is over"


def may_pause(state: Execution) -> bool:
    """Return True unless an undo has begun: its steps belong to a stop that an operator has already
    requested.
    """
    return not state.is_ended and state.paused is None and state.stopping is None


def pause(decision: Decision, fact: PauseRequested) -> None:
    state = decision.state
    if may_pause(state) and fact.control_id > state.last_control:
        own: dict[str, Any] = {"control": fact.control_id, "reason": fact.reason, "by": fact.by}
        decision.emit("Paused", timers=fact.timers, **own)


def resume(decision: Decision, fact: ResumeRequested) -> None:
    state = decision.state
    if state.paused is not None and fact.control_id > state.last_control:
        own: dict[str, Any] = {"control": fact.control_id, "reason": fact.reason, "by": fact.by}
        _resume(decision, own)


def lift(decision: Decision, reason: str) -> None:
    """Ends a pause, if there is one, because the execution is about to end."""
    if decision.state.paused is not None:
        _resume(decision, {"reason": reason, "by": BY_ENGINE})


def _resume(decision: Decision, own: dict[str, Any]) -> None:
    """The paused time is measured with two clocks, so it may be too short by twice their error.

    With that added no timer fires early. At least one millisecond is added, too: a wake for the old
    due of a retry then never fits the new due, and the attempt is not run by both wakes.
    """
    pause, moment = decision.state.paused, decision.moment
    assert pause is not None
    paused_ms = moment.now_ms - pause.since_ms
    decision.emit("Resumed", shift=max(1, paused_ms + 2 * moment.clock_error_ms), **own)
