"""The events that time alone brings."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.state import Execution, Frame, OpenDeadline
from holdfast.core.waits import event_dues


def overdue(state: Execution, past_ms: int) -> Iterator[tuple[int, int, str, OpenDeadline | None]]:
    """Yield each overdue event by `past_ms`: its time, its order within its kind, its frame, and
    the block's deadline.

    At the same moment a block's deadline comes before the events inside the block, and an outer
    deadline before an inner one. A pause that freezes the timers yields none.
    """
    if is_frozen(state):
        return
    for place, frame in enumerate(state.frames.values()):
        for due in frame.deadlines:
            if due.due_ms <= past_ms:
                yield due.due_ms, due.entry, frame.id, due
        for due_ms in event_dues(frame.waiting):
            if due_ms <= past_ms:
                yield due_ms, state.next_entry + place, frame.id, None


def overdue_frames(state: Execution, past_ms: int) -> list[Frame]:
    """Return the frames in which, or around which, something happens because `past_ms` has come."""
    if is_frozen(state):
        return []
    found: dict[str, Frame] = {}
    for frame in state.frames.values():  # Frames that opened lanes come before those lanes
        in_time = not frame.deadlines or all(due.due_ms > past_ms for due in frame.deadlines)
        if not in_time or frame.owner in found or is_overdue(frame, past_ms):
            found[frame.id] = frame
    return list(found.values())


def is_frozen(state: Execution) -> bool:
    return state.paused is not None and state.paused.is_frozen


def is_overdue(frame: Frame, past_ms: int) -> bool:
    """The wait of the frame ends, or times out, because `past_ms` has come."""
    dues = event_dues(frame.waiting)
    return bool(dues) and min(dues) <= past_ms
