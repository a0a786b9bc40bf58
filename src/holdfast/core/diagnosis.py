"""What time asks of an execution: read off its state, and of nothing else.

An execution rests, or it should move. It should move once something in it is due: then some worker
has been told, or will be, and if none comes the execution is stuck. What mail asks for is not known
here (`holdfast.runtime.maintenance.doctor` reads it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.state import Attempt, Awaiting, Delay, Entered, Execution, Frame, Timer
from holdfast.limits import CLOCK_ERROR_MS


class OverdueReason(StrEnum):
    """Why an execution should move. The value is what people read."""

    RECORD_FULL = "a record was full and nobody has gone on from it"
    ATTEMPT_DUE = "an attempt is due and nobody has claimed it"
    CLAIM_LAPSED = "a claim has lapsed and nobody has taken the attempt over"
    TIMER_OVERDUE = "a timer is overdue"
    WAIT_TIMED_OUT = "a wait is past its time-out"
    HEARTBEAT_MISSED = "a heartbeat was missed and nobody has noticed"
    QUESTION_OVERDUE = "the end of a job should have been asked for"
    DEADLINE_PASSED = "the deadline of a block has passed"
    EXECUTION_TIMED_OUT = "the execution is past its own time-out"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that should have happened. `frame` and `state` say where; "" the execution itself.

    `since_ms` is the first moment at which a worker whose clock is as wrong as it may be acts.
    """

    reason: OverdueReason
    frame: str
    state: str
    since_ms: int


def diagnose(state: Execution, now_ms: int) -> tuple[Diagnosis, ...]:
    """-> what should have happened by now, the oldest first. Nothing of one that has ended."""
    if state.is_ended:
        return ()
    found = (one for one in _asked_for(state) if one.since_ms <= now_ms)
    return tuple(sorted(found, key=lambda one: one.since_ms))


def should_move_since(state: Execution, now_ms: int) -> int | None:
    """-> since when time alone asks for a move; None while the execution may rest."""
    return min((one.since_ms for one in diagnose(state, now_ms)), default=None)


def _asked_for(state: Execution) -> Iterator[Diagnosis]:
    if state.due_ms is not None:
        since_ms = state.due_ms + 2 * CLOCK_ERROR_MS
        yield Diagnosis(OverdueReason.EXECUTION_TIMED_OUT, "", "", since_ms)
    for frame in state.frames.values():
        for reason, since_ms in _of_frame(frame):
            yield Diagnosis(reason, frame.id, frame.position, since_ms)


def _of_frame(frame: Frame) -> Iterator[tuple[OverdueReason, int]]:
    """-> what the frame waits for from time, and from when on it does so in vain."""
    for deadline in frame.deadlines:
        yield OverdueReason.DEADLINE_PASSED, deadline.due_ms + 2 * CLOCK_ERROR_MS
    match frame.waiting:
        case Entered():
            yield OverdueReason.RECORD_FULL, frame.entered_ms
        case Timer(_, due_ms) | Delay(_, due_ms):
            yield OverdueReason.TIMER_OVERDUE, due_ms + 2 * CLOCK_ERROR_MS
        case Attempt(claim=None, is_unknown=False, due_ms=due_ms):
            yield OverdueReason.ATTEMPT_DUE, due_ms + 2 * CLOCK_ERROR_MS
        case Attempt(claim=claim) if claim is not None:
            yield OverdueReason.CLAIM_LAPSED, claim.until_ms + 2 * CLOCK_ERROR_MS
        case Awaiting() as awaiting:
            dues = {
                OverdueReason.WAIT_TIMED_OUT: awaiting.due_ms,
                OverdueReason.HEARTBEAT_MISSED: awaiting.heartbeat_due_ms,
                OverdueReason.QUESTION_OVERDUE: awaiting.poll_due_ms,
            }
            for reason, until_ms in dues.items():
                if until_ms is not None:
                    yield reason, until_ms + 2 * CLOCK_ERROR_MS
        case _:
            return
