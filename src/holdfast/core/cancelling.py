"""Cancelling a line of control (the execution's main line, a branch or an iteration): its finished
work is undone from the inside out, then the line ends.

Rules of this file (in full: docs/reference/extensions.md):
* A cancelled line evaluates no further state of its own. It runs the undo blocks around its
  position, the innermost first. No Retry or Catch sees the cancellation.
* Inside a shielded part, and inside an undo, the line continues. It is cancelled at the next step
  outside of that part.
* A statement that Python carries out without waiting is no step: `reply`, `send`, a line of a log
  (`asl/resources.py`, `is_plain`). A line that is cancelled at one finishes it, and continues up to
  the next step. So a request that has been received is replied to when only such statements follow.
* A line that leaves a block before its next step is not late, whatever the time is. Definitions of
  earlier releases have no `Cuts` at their deadlines: in them the line is late, and such a deadline
  also ends a statement that does not wait.
* A Parallel or Map waits until the last of its lines has ended. Then the field `then` of `Closing`
  says what follows.

Example: the position of a line lies in two undo blocks when the execution is stopped.

    book ── pay ── ship          Cancelled {reason}
      ▲      ▲      ▲            UndoStarted (pay) ─► its steps ─► UndoStarted (book) ─► its steps
      └─undo─┴─undo─┘ here       ExecutionAborted

The steps of an undo are ordinary states: they may wait, fail and be retried. The undo ends at the
state that its rule names; from there the next outer undo starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

from holdfast.asl import error_names
from holdfast.asl.program import (
    BlockDeadline,
    Json,
    MapState,
    ParallelState,
    State,
    SucceedState,
    TaskState,
    UndoRule,
    WaitState,
)
from holdfast.asl.resources import is_plain
from holdfast.asl.template import StateError
from holdfast.core import flow, lanes
from holdfast.core.decision import Decision, note_started, whole_seconds
from holdfast.core.facts import StopRequested
from holdfast.core.state import (
    ROOT,
    Attempt,
    CancelReason,
    Closing,
    Entered,
    Execution,
    Frame,
    Lanes,
    OpenDeadline,
    Stopping,
)
from holdfast.limits import PLAIN_TASKS_WHEN_CANCELLED_MAX

#: The error names that undo steps receive as the reason for the undo.
STOPPED: Final = "Holdfast.Stopped"
CANCELLED: Final = "Holdfast.Cancelled"
BLOCK_TIMEOUT: Final = "BlockTimeout"
_WHOLE_LINE: Final[CancelReason] = {"error": CANCELLED, "cause": ""}


# -- the whole execution ---------------------------------------------------------------------------


def is_stopped_by(state: Execution, fact: StopRequested) -> bool:
    """Return True when the stop changes the execution. A stop counts once, however often it is
    stored.

    A caller repeats a stop when the response to it was lost, and a parent execution that was
    stopped repeats it, too. If the second stop counted, it would end the undo that the first one
    began. Only a stop with `now` ends the execution before the undo has finished.
    """
    before = state.stopping
    is_asked_for = (
        before is not None and before["status"] == "ABORTED" and not before.get("by_parent", False)
    )
    return fact.control_id > state.last_control and (fact.now or not is_asked_for)


def stop(decision: Decision, fact: StopRequested) -> None:
    """Stop the execution. Finished work is undone first; with `now` the execution ends at once.

    A stop may arrive while the work is being undone after a time-out or after a stop from a parent.
    The undo then finishes, and the new stop decides the final status. `is_stopped_by` has already
    filtered out a stop that repeats another one.
    """
    texts = {"error": fact.error, "cause": fact.cause}
    details = {key: text for key, text in texts.items() if text is not None}
    before = decision.state.stopping
    if fact.now or not _has_to_unwind(decision, decision.frame(ROOT)):
        note_started(decision)
        said = {} if before is None else _texts_of(before)
        decision.emit("ExecutionAborted", details={**said, **details}, control=fact.control_id)
        return
    stopping: Stopping = {"status": "ABORTED", **details}  # type: ignore[typeddict-item]
    if fact.by_parent:
        stopping["by_parent"] = True
    decision.emit("Stopping", control=fact.control_id, stopping=stopping)
    if before is None:
        reason: CancelReason = {"error": fact.error or STOPPED, "cause": fact.cause or ""}
        _cancel(decision, decision.frame(ROOT), reason)


def time_out(decision: Decision) -> None:
    """End the execution because its own time-out has passed. Finished work is undone first."""
    if not _has_to_unwind(decision, decision.frame(ROOT)):
        note_started(decision)
        decision.emit("ExecutionTimedOut")
        return
    stopping: Stopping = {"status": "TIMED_OUT"}
    decision.emit("Stopping", stopping=stopping)
    _cancel(decision, decision.frame(ROOT), {"error": error_names.TIMEOUT, "cause": ""})


def _end_execution(decision: Decision) -> None:
    stopping = decision.state.stopping
    assert stopping is not None
    ending = {"ABORTED": "ExecutionAborted", "TIMED_OUT": "ExecutionTimedOut"}
    decision.emit(ending[stopping["status"]], details=_texts_of(stopping))


def _texts_of(stopping: Stopping) -> dict[str, Any]:
    return {key: text for key, text in stopping.items() if key in {"error", "cause"}}


# -- blocks with a deadline ------------------------------------------------------------------------


def begin_block(decision: Decision, frame: Frame) -> None:
    """Start the clock of the block that begins at the frame's state, if there is one. Raises
    StateError.
    """
    for number, deadline in enumerate(decision.program.deadlines):
        # A retry or a redrive may enter the block's first state again. The deadline is set already
        # and must not move, because the time of a block includes its retries.
        is_set = any(due.number == number for due in frame.deadlines)
        if deadline.begin == frame.position and not is_set:
            value = decision.evaluate(deadline.seconds, frame)
            seconds = whole_seconds(value, "Seconds", least=1)
            set_deadline(decision, frame.id, number, seconds)


def set_deadline(decision: Decision, frame_id: str, number: int, seconds: int) -> None:
    decision.emit(
        "DeadlineSet",
        frame=frame_id,
        number=number,
        entry=decision.state.next_entry,
        due=decision.moment.now_ms + seconds * 1_000,
        seconds=seconds,
    )


def pass_deadline(decision: Decision, frame: Frame, due: OpenDeadline) -> None:
    reason: CancelReason = {"error": BLOCK_TIMEOUT, "cause": "", "deadline": due.number}
    _cancel(decision, frame, reason, over=[due.number])


def _leave_block(decision: Decision, frame: Frame, number: int) -> None:
    """Leave a block whose deadline has passed and whose work is undone: raise the time-out error at
    the place of the block.
    """
    deadline = decision.program.deadlines[number]
    error: Json = {"Error": BLOCK_TIMEOUT, "Cause": ""}
    assigned = _assigned(decision, frame, deadline, error) or {}
    decision.emit("DeadlinePassed", frame=frame.id, assigned=assigned, over=[number])
    frame = decision.frame(frame.id)
    if deadline.next is None:
        flow.pass_on(decision, frame, flow.Failure(BLOCK_TIMEOUT, ""))
    else:
        flow.enter(decision, frame.id, deadline.next, frame.input, frame.previous)


# -- lines -----------------------------------------------------------------------------------------


def close(decision: Decision, owner: Frame, closing: Closing, failed: Frame | None = None) -> bool:
    """Cancel the lanes (branches or iterations) of `owner`. Return False when no lane has anything
    to undo: the caller may then drop them all at once. `failed` is the lane that has already ended.
    """
    over_id = None if failed is None else failed.id
    open_lanes = [lane for lane in _lanes_of(decision, owner) if lane.id != over_id]
    unwinding = [lane for lane in open_lanes if _has_to_unwind(decision, lane)]
    if not unwinding:
        return False
    own: dict[str, Any] = {} if failed is None else {"failed": failed.id}
    decision.emit("Closing", frame=owner.id, closing=closing, **own)
    reason = _WHOLE_LINE
    if closing["then"] == "cancel" and owner.cancelled is not None:
        reason = {"error": owner.cancelled["error"], "cause": owner.cancelled["cause"]}
    # End the lanes without undo first. When the last lane has finished its undo, the owner may
    # continue, and then no lane exists that could be ended.
    for lane in open_lanes:
        if lane not in unwinding:
            flow.abort_lane(decision, owner, lane)
            decision.emit("Unwound", frame=lane.id)
    for lane in unwinding:
        _cancel(decision, lane, reason)
    return True


def outlasting(decision: Decision, frame: Frame) -> CancelReason | None:
    """Return the reason for which the frame is still cancelled when it leaves all its blocks; None
    when it then ends as if no deadline had passed.
    """
    return _after_blocks(decision, frame, None)


def blocks_left(decision: Decision, frame: Frame, name: str) -> list[int]:
    """Return the deadlines of the blocks that the frame leaves by entering `name`. Their time may
    be over, and then the frame continues as if it was not.
    """
    deadlines = decision.program.deadlines
    left = [due.number for due in frame.deadlines if name not in deadlines[due.number].states]
    reason, kept = frame.cancelled, _after_blocks(decision, frame, name)
    while reason is not None and reason is not kept:
        left.append(reason["deadline"])
        reason = reason.get("outer")
    return left


def _after_blocks(decision: Decision, frame: Frame, name: str | None) -> CancelReason | None:
    """Return the reasons for the cancellation without the deadlines of the blocks that the frame
    leaves by entering `name`; None: by its end. A frame that has begun an undo stays cancelled.
    """
    reason = frame.cancelled
    if reason is None or reason.get("undone"):
        return reason
    while reason is not None and "deadline" in reason:
        deadline = decision.program.deadlines[reason["deadline"]]
        if not deadline.cuts_steps_only or name in deadline.states:
            break
        reason = reason.get("outer")
    return reason


def is_over(decision: Decision, frame: Frame) -> bool:
    """Handle the end of a cancelled frame inside a shielded part or an undo. The frame's result is
    dropped.

    When only the deadline of a block has passed, the result ends that block.
    """
    if frame.cancelled is None:
        return False
    frame = decision.frame(frame.id)
    reason = outlasting(decision, frame)
    if reason is None:
        return False
    if "deadline" in reason:
        _leave_block(decision, frame, reason["deadline"])
    else:
        _end_line(decision, frame)
    return True


def has_failed(decision: Decision, frame: Frame) -> bool:
    """Return True, and cancel the frame, when it fails inside a shield although a cancellation
    waits.

    The next step would have been cancelled, so the failure replaces it; finished work is still
    undone. A failure before the next step of a block leaves the block.
    """
    frame = decision.frame(frame.id)
    reason = outlasting(decision, frame)
    if reason is None or _is_shielded(decision, frame, reason):
        return is_over(decision, frame)
    _unwind(decision, frame)
    return True


def is_late(decision: Decision, frame_id: str, name: str) -> bool:
    """Return True, and leave the block, when its deadline passed while a shield delayed the
    cancellation of this frame.
    """
    frame = decision.state.frames.get(frame_id)
    reason = None if frame is None else _after_blocks(decision, frame, name)
    if frame is None or reason is None or "deadline" not in reason:
        return False
    number = reason["deadline"]
    if name in decision.program.deadlines[number].states:
        return False
    _leave_block(decision, frame, number)
    return True


def is_taken(decision: Decision, frame: Frame) -> bool:
    """Return True when the cancelled frame must not run the state that it has entered, but
    continues its undo.

    At the end of an undo the cancellation takes effect at once. Elsewhere it takes effect at the
    next state that waits: in Python, too, a coroutine can be cancelled only where it waits.
    """
    reason = frame.cancelled
    assert reason is not None
    if _shields(decision, frame, reason):
        return False
    undone = reason.get("undone", ())
    is_undone = any(decision.program.undos[number].end == frame.position for number in undone)
    if not is_undone and not _is_step(decision, frame, reason):
        return False
    _unwind(decision, frame)
    return True


def _cancel(
    decision: Decision, frame: Frame, reason: CancelReason, over: Sequence[int] = ()
) -> None:
    """Cancel the work of a frame (the main line, a branch or an iteration): begin with its undo
    steps. `over`: the block deadlines that have passed. The frame may already be cancelled for
    another reason.
    """
    held = frame.cancelled
    # An outer reason needs the number, too: it stays when the frame leaves the inner block.
    noted = _among(decision, frame, held, {**reason, "entry": decision.state.next_entry})
    if noted is not held or over:
        undone = () if held is None else held.get("undone", ())
        told = {name: value for name, value in noted.items() if name != "entry"}
        entry = noted.get("entry", decision.state.next_entry)
        told |= {"undone": list(undone), "entry": entry}
        decision.emit("Cancelled", frame=frame.id, reason=told, over=list(over))
    is_innermost = noted is not held and noted.get("deadline") == reason.get("deadline")
    if is_innermost and not _is_shielded(decision, frame, reason):
        _begin_to_unwind(decision, decision.frame(frame.id))


def _among(
    decision: Decision, frame: Frame, held: CancelReason | None, reason: CancelReason
) -> CancelReason:
    """Return the reasons for the cancellation that are in force, the innermost first.

    If a shield delays the outer reason, both stay in force. Without a shield only the outer reason
    counts, because the part that it cancels includes the inner part.
    """
    if held is None:
        return reason
    if _is_inside(decision, reason, held):
        inner, outer = reason, held
    else:
        inner, outer = held, _among(decision, frame, held.get("outer"), reason)
    if len(_shields(decision, frame, inner)) == len(_shields(decision, frame, outer)):
        return outer
    return {**inner, "outer": outer}


def _is_inside(decision: Decision, inner: CancelReason, outer: CancelReason) -> bool:
    """Return True when the part that `inner` cancels lies inside the part that `outer` cancels."""
    if "deadline" not in outer:
        return True
    if "deadline" not in inner:
        return False
    deadlines = decision.program.deadlines
    return deadlines[inner["deadline"]].begin in deadlines[outer["deadline"]].states


def _begin_to_unwind(decision: Decision, frame: Frame) -> None:
    if not isinstance(frame.waiting, Lanes) or not close(decision, frame, {"then": "cancel"}):
        _unwind(decision, frame)


def _unwind(decision: Decision, frame: Frame) -> None:
    reason = frame.cancelled
    assert reason is not None
    found = _next_undo(decision, frame, reason)
    if found is None:
        if "deadline" in reason:
            _leave_block(decision, frame, reason["deadline"])
        else:
            _end_line(decision, frame)
        return
    number, undo = found
    error: Json = {"Error": reason["error"], "Cause": reason["cause"]}
    assigned = _assigned(decision, frame, undo, error)
    decision.emit("UndoStarted", frame=frame.id, undo=number, assigned=assigned or {})
    if assigned is None:
        # A compiled expression does not fail. If one does, skip this undo and continue with the
        # next one, so that the cancellation finishes.
        _unwind(decision, decision.frame(frame.id))
    else:
        flow.enter(decision, frame.id, undo.begin, frame.input, frame.previous)


def _next_undo(
    decision: Decision, frame: Frame, reason: CancelReason
) -> tuple[int, UndoRule] | None:
    """Return the innermost undo around the frame's position that has not run. If the deadline of a
    block is the reason, only undos inside that block count.
    """
    within = None
    if "deadline" in reason:
        within = decision.program.deadlines[reason["deadline"]].states
    for number, undo in enumerate(decision.program.undos):
        is_within = within is None or undo.begin in within
        if frame.position in undo.states and is_within and number not in reason.get("undone", ()):
            return number, undo
    return None


def _assigned(
    decision: Decision, frame: Frame, part: UndoRule | BlockDeadline, error: Json
) -> dict[str, Json] | None:
    """Return the variables that an undo or block assigns at its beginning; None when their
    expressions fail.
    """
    if part.assign is None:
        return {}
    try:
        assigned = decision.evaluate(part.assign, frame, {"errorOutput": error})
    except StateError:
        return None
    assert isinstance(assigned, dict)
    return assigned


def _end_line(decision: Decision, frame: Frame) -> None:
    if frame.owner is None:
        _end_execution(decision)
        return
    decision.emit("Unwound", frame=frame.id)
    owner = decision.frame(frame.owner)
    if not any(_lanes_of(decision, owner)):
        _settle(decision, owner)


def _settle(decision: Decision, owner: Frame) -> None:
    """Continue the closing of a Parallel or Map after its last lane has ended."""
    assert isinstance(owner.waiting, Lanes)
    closing = owner.waiting.closing
    assert closing is not None
    match closing["then"]:
        case "cancel":
            _unwind(decision, owner)
        case "join":
            lanes.join(decision, owner)
        case "fail":
            failure = flow.Failure(closing.get("error"), closing.get("cause"))
            flow.settle_failure(decision, owner, failure, closing["previous"])
        case _:
            assert_never(closing["then"])


# -- places of states ------------------------------------------------------------------------------


def _lanes_of(decision: Decision, owner: Frame) -> list[Frame]:
    return [frame for frame in decision.state.frames.values() if frame.owner == owner.id]


def _has_to_unwind(decision: Decision, frame: Frame) -> bool:
    """Return True when the cancelled frame must run an undo, or finish a shielded part, before it
    ends.
    """
    return (
        frame.cancelled is not None
        or any(frame.position in undo.states for undo in decision.program.undos)
        or _is_shielded(decision, frame, _WHOLE_LINE)
        or any(_has_to_unwind(decision, lane) for lane in _lanes_of(decision, frame))
    )


def _is_shielded(decision: Decision, frame: Frame, reason: CancelReason) -> bool:
    """Return True when the cancellation does not end what the frame does now."""
    if _shields(decision, frame, reason):
        return True
    # An attempt that no worker can run might never end.
    is_begun = isinstance(frame.waiting, Entered) or (
        isinstance(frame.waiting, Attempt) and not frame.waiting.is_unknown
    )
    return is_begun and _is_plain(decision, decision.state_of(frame), reason)


def _is_plain(decision: Decision, state: State, reason: CancelReason) -> bool:
    """Return True for a Task that is no step for this cancellation."""
    if not isinstance(state, TaskState) or not is_plain(state.kind, state.target):
        return False
    deadlines = decision.program.deadlines
    if "deadline" in reason and not deadlines[reason["deadline"]].cuts_steps_only:
        return False
    tasks = decision.state.next_entry - reason.get("entry", decision.state.next_entry)
    return tasks <= PLAIN_TASKS_WHEN_CANCELLED_MAX


def _shields(decision: Decision, frame: Frame, reason: CancelReason) -> list[frozenset[str]]:
    """Return the sets of states of the shields around the frame.

    A shield delays a cancellation that comes from outside of the shield. It does not delay the
    deadline of a block inside the shield, and it does not delay the closing of a Parallel or Map
    inside the shield, which cancels that state's lanes.
    """
    program = decision.program
    inside = [] if frame.owner is None else [decision.frame(frame.owner).position]
    if "deadline" in reason:
        inside.append(program.deadlines[reason["deadline"]].begin)
    parts = (*program.shielded, *(undo.own for undo in program.undos))
    return [one for one in parts if frame.position in one and not one.intersection(inside)]


def _is_step(decision: Decision, frame: Frame, reason: CancelReason) -> bool:
    """Return True when the state waits for something outside. A Parallel whose branches only
    compute does not count: it ends without a wait.
    """
    match decision.state_of(frame):
        case TaskState() as state:
            return not _is_plain(decision, state, reason)
        case WaitState() | MapState():
            return True
        case ParallelState(branches=[start]):
            return not isinstance(decision.program.states[start], SucceedState)
        case ParallelState():
            return True
        case _:
            return False
