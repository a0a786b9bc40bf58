"""A stop, where something has been done that has to be taken back: undone first, then ABORTED.

Every line of control that is open unwinds from the inside: a lane whose position lies in a part
with an undo runs it, and is then over; when the lanes of a Parallel or Map are over, it is the turn
of the line that opened them. When the root is over, so is the execution.
"""

from __future__ import annotations

from holdfast.asl.program import Json, Undo
from holdfast.asl.template import StateError
from holdfast.core.decision import Decision
from holdfast.core.facts import StopRequested
from holdfast.core.flow import enter
from holdfast.core.state import Frame
from holdfast.core.tasks import note_started

STOPPED = "Holdfast.Stopped"


def stop(decision: Decision, fact: StopRequested) -> None:
    """A second stop does not wait for the first one's undo."""
    texts = {"error": fact.error, "cause": fact.cause}
    details = {key: text for key, text in texts.items() if text is not None}
    is_second = decision.state.stopping is not None
    if is_second or not any(_undo_at(decision, frame) for frame in decision.state.frames.values()):
        note_started(decision)
        decision.emit("ExecutionAborted", details=details, control=fact.control_id)
        return
    decision.emit("Stopping", control=fact.control_id, texts=details)
    for frame in list(decision.state.frames.values()):
        if not _has_lanes(decision, frame):
            _unwind(decision, frame)


def is_undone(decision: Decision, frame: Frame) -> bool:
    """The frame has entered the state where a part's undo is over: it goes on to the next."""
    if decision.state.stopping is None:
        return False
    if all(undo.end != frame.position for undo in decision.program.undos):
        return False
    _unwind(decision, frame)
    return True


def _has_lanes(decision: Decision, frame: Frame) -> bool:
    return any(other.owner == frame.id for other in decision.state.frames.values())


def _undo_at(decision: Decision, frame: Frame) -> Undo | None:
    """The innermost one: an inner part stands before those around it."""
    undos = decision.program.undos
    return next((undo for undo in undos if frame.position in undo.states), None)


def _unwind(decision: Decision, frame: Frame) -> None:
    undo = _undo_at(decision, frame)
    if undo is None:
        _end_frame(decision, frame)
        return
    stopping = decision.state.stopping
    assert stopping is not None
    error = {"Error": stopping.get("error", STOPPED), "Cause": stopping.get("cause", "")}
    assigned: Json = {}
    if undo.assign is not None:
        try:
            assigned = decision.evaluate(undo.assign, frame, {"errorOutput": error})
        except StateError:
            # Compiled expressions do not fail; if one does, nothing can be undone here.
            _end_frame(decision, frame)
            return
    decision.emit("UndoStarted", frame=frame.id, assigned=assigned)
    enter(decision, frame.id, undo.begin, frame.input, frame.previous)


def _end_frame(decision: Decision, frame: Frame) -> None:
    if frame.owner is None:
        stopping = decision.state.stopping
        assert stopping is not None
        decision.emit("ExecutionAborted", details=dict(stopping))
        return
    decision.emit("Unwound", frame=frame.id)
    owner = decision.frame(frame.owner)
    if not _has_lanes(decision, owner):
        _unwind(decision, owner)
