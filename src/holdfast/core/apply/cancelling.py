"""The events of lines that are cancelled, and of blocks with a deadline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core.apply.frames import Apply, frame_of_event, moved, over, without, without_lanes
from holdfast.core.events import Event
from holdfast.core.state import (
    CancelReason,
    Closing,
    Execution,
    Exited,
    Frame,
    Lanes,
    OpenDeadline,
    Stopping,
    is_undone,
)


def _stopping(state: Execution, event: Event) -> Execution:
    """Apply a stop. The execution has no time-out during its undo."""
    own = event.holdfast
    stopping: Stopping = own["stopping"]
    control = own.get("control", state.last_control)
    return state._replace(stopping=stopping, last_control=control, due_ms=None)


def _closing(state: Execution, event: Event) -> Execution:
    """Mark a Parallel or Map as closing, and remove the lane whose failure closes it, if the event
    names one.
    """
    frame, own = frame_of_event(state, event), event.holdfast
    assert isinstance(frame.waiting, Lanes)
    closed = frame._replace(waiting=frame.waiting._replace(closing=own["closing"]))
    state = state.with_frame(closed)
    return _without_lane(state, state.frames[own["failed"]]) if "failed" in own else state


def _cancelled(state: Execution, event: Event) -> Execution:
    """Mark the frame as cancelled, and remove the block deadlines that have passed."""
    frame, own = frame_of_event(state, event), event.holdfast
    kept = tuple(due for due in frame.deadlines if due.number not in own["over"])
    return state.with_frame(frame._replace(cancelled=own["reason"], deadlines=kept))


def _undo_started(state: Execution, event: Event) -> Execution:
    frame, own = frame_of_event(state, event), event.holdfast
    assert frame.cancelled is not None
    undone = [*frame.cancelled.get("undone", ()), own["undo"]]
    reason: CancelReason = {**frame.cancelled, "undone": undone}
    variables = {**frame.variables, **own["assigned"]}
    state = without_lanes(state, frame)
    return moved(state, frame, event, variables=variables, cancelled=reason, waiting=Exited())


def _unwound(state: Execution, event: Event) -> Execution:
    return _without_lane(state, frame_of_event(state, event))


def _without_lane(state: Execution, lane: Frame) -> Execution:
    """Remove an ended lane from a Parallel or Map that is closing. The owner records that something
    was undone in the lane, because such an execution cannot be redriven.
    """
    assert lane.owner is not None
    if is_undone(lane):
        owner = state.frames[lane.owner]
        assert isinstance(owner.waiting, Lanes)
        assert owner.waiting.closing is not None
        closing: Closing = {**owner.waiting.closing, "undone": True}
        state = state.with_frame(owner._replace(waiting=owner.waiting._replace(closing=closing)))
    return without(state, {lane.id})


def _children_stopped(state: Execution, event: Event) -> Execution:
    return over(state, *((entry, number) for entry, number in event.holdfast["children"]))


def _deadline_set(state: Execution, event: Event) -> Execution:
    frame, own = frame_of_event(state, event), event.holdfast
    due = OpenDeadline(own["number"], own["entry"], own["due"], own["seconds"])
    state = state._replace(next_entry=max(state.next_entry, due.entry + 1))
    return state.with_frame(frame._replace(deadlines=(*frame.deadlines, due)))


def _deadline_passed(state: Execution, event: Event) -> Execution:
    """Leave the blocks whose deadlines have passed: their undo is finished, and no lane inside them
    stays open.
    """
    frame, own = frame_of_event(state, event), event.holdfast
    variables = {**frame.variables, **own["assigned"]}
    left = without_deadlines(frame, own["over"])
    return without_lanes(state, frame).with_frame(
        left._replace(variables=variables, waiting=Exited())
    )


def without_deadlines(frame: Frame, numbers: Sequence[int]) -> Frame:
    """Return the frame without these deadlines. The frame has left the blocks, so a cancellation
    from one of them ends too.
    """
    kept = tuple(due for due in frame.deadlines if due.number not in numbers)
    reason = frame.cancelled
    if reason is not None and reason.get("deadline") in numbers:
        reason = reason.get("outer")
    return frame._replace(deadlines=kept, cancelled=reason)


HANDLERS: Final[Mapping[str, Apply]] = {
    "Stopping": _stopping,
    "Closing": _closing,
    "Cancelled": _cancelled,
    "UndoStarted": _undo_started,
    "Unwound": _unwound,
    "ChildrenStopped": _children_stopped,
    "DeadlineSet": _deadline_set,
    "DeadlinePassed": _deadline_passed,
}
