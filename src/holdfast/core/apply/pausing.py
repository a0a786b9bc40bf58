"""The events of a pause: `Paused` and `Resumed`.

`Resumed` says by how much it moves the due times (`shift`, in ms). If the pause froze the timers,
all due times move; otherwise only those of attempts move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never

from holdfast.core.apply.frames import Apply
from holdfast.core.events import Event
from holdfast.core.state import (
    Admission,
    Attempt,
    Awaiting,
    ChildExecutions,
    Delay,
    Entered,
    Execution,
    Exited,
    FailedState,
    Frame,
    Lanes,
    Pause,
    Timer,
    WaitingFor,
)


def _paused(state: Execution, event: Event) -> Execution:
    own = event.holdfast
    pause = Pause(event.at_ms, own["reason"], own["by"], own["timers"])
    return state._replace(paused=pause, last_control=own["control"])


def _resumed(state: Execution, event: Event) -> Execution:
    pause = state.paused
    assert pause is not None
    control = event.holdfast.get("control", state.last_control)
    state = state._replace(paused=None, last_control=control)
    shift_ms = event.holdfast["shift"]
    frames = {
        frame.id: _shifted(_with_lease(frame, event.at_ms), shift_ms, is_frozen=pause.is_frozen)
        for frame in state.frames.values()
    }
    if not pause.is_frozen:
        return state._replace(frames=frames)
    return state._replace(frames=frames, due_ms=_later(state.due_ms, shift_ms))


def _with_lease(frame: Frame, resumed_ms: int) -> Frame:
    """Extend a lease that expired during the pause up to the time of the resume. No worker could
    take the attempt over during the pause, so `doctor` must not report it as abandoned.
    """
    waiting = frame.waiting
    if not isinstance(waiting, Attempt) or waiting.claim is None:
        return frame
    lease = replace(waiting.claim, until_ms=max(waiting.claim.until_ms, resumed_ms))
    return frame._replace(waiting=replace(waiting, claim=lease))


def _shifted(frame: Frame, shift_ms: int, *, is_frozen: bool) -> Frame:
    waiting = _shifted_wait(frame.waiting, shift_ms, is_frozen=is_frozen)
    if not is_frozen:
        return frame._replace(waiting=waiting)
    deadlines = tuple(due._replace(due_ms=due.due_ms + shift_ms) for due in frame.deadlines)
    return frame._replace(waiting=waiting, deadlines=deadlines)


def _shifted_wait(waiting: WaitingFor, shift_ms: int, *, is_frozen: bool) -> WaitingFor:
    """Move the due times of a wait by the length of the pause. Attempts do not begin during a
    pause, so their due times move even when the pause lets timers run.
    """
    match waiting:
        case Attempt():
            return replace(waiting, due_ms=waiting.due_ms + shift_ms)
        case Timer() | Delay():
            return replace(waiting, due_ms=waiting.due_ms + shift_ms) if is_frozen else waiting
        case Awaiting():
            if not is_frozen:
                return waiting
            return replace(
                waiting,
                due_ms=_later(waiting.due_ms, shift_ms),
                heartbeat_due_ms=_later(waiting.heartbeat_due_ms, shift_ms),
                poll_due_ms=_later(waiting.poll_due_ms, shift_ms),
            )
        case Entered() | Exited() | FailedState() | Admission() | Lanes() | ChildExecutions():
            return waiting
        case _:
            assert_never(waiting)


def _later(due_ms: int | None, shift_ms: int) -> int | None:
    return None if due_ms is None else due_ms + shift_ms


HANDLERS: Final[Mapping[str, Apply]] = {"Paused": _paused, "Resumed": _resumed}
