"""Find out from the state of an execution whether it should have continued by now.

An execution either waits as intended, or something in it is due and a worker should act. If no
worker acts on something that is due, the execution is stuck: its wake message was lost or never
sent. A paused execution is due for nothing, except for timers that its pause lets run. `next_dues`
gives the next times at which an execution changes because of the time alone.

This module does not read the inbox; `holdfast.runtime.maintenance.doctor` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from holdfast.core.state import Entered, Execution, Frame, Pause
from holdfast.core.waits import DueKind, dues_of, is_frozen, runs_on
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import CLOCK_ERROR_MS


class OverdueReason(StrEnum):
    """The reason why an execution should have continued by now. The value is the text that `doctor`
    prints.
    """

    RECORD_FULL = "a record was full and no worker has gone on from it"
    ATTEMPT_DUE = "an attempt is due and no worker has claimed it"
    CLAIM_LAPSED = "a claim has lapsed and no worker has taken the attempt over"
    TIMER_OVERDUE = "a timer is overdue"
    WAIT_TIMED_OUT = "a wait is past its time-out"
    HEARTBEAT_MISSED = "a heartbeat was missed and no worker has noticed"
    QUESTION_OVERDUE = "the end of a job should have been asked for"
    DEADLINE_PASSED = "the deadline of a block has passed"
    EXECUTION_TIMED_OUT = "the execution is past its own time-out"


#: The reason that `doctor` reports when a time of this kind has passed and nothing was done.
OVERDUE: Final[Mapping[DueKind, OverdueReason]] = {
    DueKind.TIMER: OverdueReason.TIMER_OVERDUE,
    DueKind.BEGIN: OverdueReason.ATTEMPT_DUE,
    DueKind.LEASE: OverdueReason.CLAIM_LAPSED,
    DueKind.TIME_OUT: OverdueReason.WAIT_TIMED_OUT,
    DueKind.HEARTBEAT: OverdueReason.HEARTBEAT_MISSED,
    DueKind.POLL: OverdueReason.QUESTION_OVERDUE,
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One event that should have happened. `frame` and `state` give the place; both are "" for the
    execution itself.

    `since_ms` is the first moment at which any worker would act, even one whose clock is behind by
    the largest allowed error.
    """

    reason: OverdueReason
    frame: str
    state: str
    since_ms: int


def diagnose(state: Execution, now_ms: int) -> tuple[Diagnosis, ...]:
    """Return the overdue events of the execution, the oldest first. An ended execution has none."""
    if state.is_ended:
        return ()
    found = (one for one in _asked_for(state) if one.since_ms <= now_ms)
    return tuple(sorted(found, key=lambda one: one.since_ms))


def should_move_since(state: Execution, now_ms: int) -> int | None:
    """Return the time since which a worker should have acted; None while nothing is overdue."""
    return min((one.since_ms for one in diagnose(state, now_ms)), default=None)


def _asked_for(state: Execution) -> Iterator[Diagnosis]:
    if is_frozen(state):
        return
    if state.due_ms is not None:
        since_ms = state.due_ms + 2 * CLOCK_ERROR_MS
        yield Diagnosis(OverdueReason.EXECUTION_TIMED_OUT, "", "", since_ms)
    for frame in state.frames.values():
        for reason, since_ms in _of_frame(frame, state.paused):
            yield Diagnosis(reason, frame.id, frame.position, since_ms)


def _of_frame(frame: Frame, pause: Pause | None) -> Iterator[tuple[OverdueReason, int]]:
    """Yield each event that the time alone causes in the frame, with the time from which it is
    overdue.
    """
    for deadline in frame.deadlines:
        yield OverdueReason.DEADLINE_PASSED, deadline.due_ms + 2 * CLOCK_ERROR_MS
    if isinstance(frame.waiting, Entered) and pause is None:
        yield OverdueReason.RECORD_FULL, frame.entered_ms
    for kind, due_ms in dues_of(frame.waiting):
        if runs_on(kind, pause):
            yield OVERDUE[kind], due_ms + 2 * CLOCK_ERROR_MS


def next_dues(state: Execution) -> Iterator[int]:
    """Yield the next time at which the time alone changes something: for each frame, and for the
    execution itself.
    """
    pause = state.paused
    if pause is not None and pause.is_frozen:
        return
    if state.due_ms is not None:
        yield state.due_ms
    for frame in state.frames.values():
        due_ms = next_due_ms(frame, pause)
        if due_ms is not None:
            yield due_ms


def next_due_ms(frame: Frame, pause: Pause | None = None) -> int | None:
    """Return the next time at which the time alone changes the frame, or None.

    The end of a lease is not included: it changes no state. The sweeper finds expired leases.
    """
    if pause is not None and pause.is_frozen:
        return None
    dues_ms = [deadline.due_ms for deadline in frame.deadlines]
    dues_ms += [
        due_ms
        for kind, due_ms in dues_of(frame.waiting)
        if kind != DueKind.LEASE and runs_on(kind, pause)
    ]
    return min(dues_ms, default=None)
