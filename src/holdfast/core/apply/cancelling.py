"""The events of branches and executions that are cancelled, and of blocks with a deadline."""

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
    """Record a stop. The execution has no time-out while it undoes its work."""
    own = event.holdfast
    stopping: Stopping = own["stopping"]
    control = own.get("control", state.last_control)
    return state._replace(stopping=stopping, last_control=control, due_ms=None)


def _closing(state: Execution, event: Event) -> Execution:
    """Mark a Parallel or Map as closing. If the event names a lane (branch or iteration) whose
    failure caused it, remove that lane.
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
    """Remove an ended lane from a Parallel or Map that is closing. If the lane undid something,
    record that in the owner: an execution that has undone work cannot be redriven.
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
    """Leave the blocks whose deadlines have passed. Their undo is finished, so no lane inside them
    is open.
    """
    frame, own = frame_of_event(state, event), event.holdfast
    variables = {**frame.variables, **own["assigned"]}
    left = without_deadlines(frame, own["over"])
    return without_lanes(state, frame).with_frame(
        left._replace(variables=variables, waiting=Exited())
    )


def without_deadlines(frame: Frame, numbers: Sequence[int]) -> Frame:
    """Return the frame without these deadlines. The frame has left their blocks, so a cancellation
    that one of them caused ends, too.
    """
    kept = tuple(due for due in frame.deadlines if due.number not in numbers)
    reason = frame.cancelled
    while reason is not None and reason.get("deadline") in numbers:
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
