"""Pause and resume of one execution, at an operator's request.

Rules of this file (docs/explanation/waits.md shows them with times):
* A paused execution applies facts. It evaluates no state and requests no command that begins
  something. An arriving result is recorded and the next state is entered, but not evaluated.
* A stop ends the pause, because the open work must be undone. The execution's own time-out ends it,
  too, if the pause lets the timers run.
* A request that does not fit has no effect: a second pause, a resume of an execution that is not
  paused, a pause of an execution that is being stopped or has ended.
"""

from __future__ import annotations

from typing import Any

from holdfast.core.decision import Decision
from holdfast.core.facts import PauseRequested, ResumeRequested
from holdfast.core.state import Execution

#: The author of a resume that Holdfast itself causes, and the two reasons for such a resume.
BY_ENGINE = "holdfast"
STOPPED = "the execution is stopped"
TIMED_OUT = "the time of the execution is over"


def may_pause(state: Execution) -> bool:
    """Return False when an undo has begun: it belongs to a stop that was already requested and must
    finish.
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
    """End the pause, if there is one, because the execution is about to end."""
    if decision.state.paused is not None:
        _resume(decision, {"reason": reason, "by": BY_ENGINE})


def _resume(decision: Decision, own: dict[str, Any]) -> None:
    """End the pause and move the due times by the paused time.

    The paused time is the difference of two hosts' clocks, so it may be too short by twice the
    clock error. That error is added, so that no timer fires early. At least one millisecond is
    added, so that the due time of a retry changes: otherwise an old wake and the new one would both
    run the attempt.
    """
    pause, moment = decision.state.paused, decision.moment
    assert pause is not None
    paused_ms = moment.now_ms - pause.since_ms
    decision.emit("Resumed", shift=max(1, paused_ms + 2 * moment.clock_error_ms), **own)
