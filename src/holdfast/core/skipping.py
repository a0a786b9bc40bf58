"""Skip of one step: an operator gives its result, and the execution continues after it.

Rules of this file (docs/explanation/repair.md shows them):
* A step is a task or a wait. To skip a block of branches, the operator skips its open steps.
* The operator's result replaces the step's own. The state is left with its Assign and Output.
* A step of an ended execution is skipped by continuing the execution, as a retry does. Other steps
  that were open at the end run again.
* The request names one visit of the state. If the step has ended in the meantime, the request has
  no effect. Without this, it could replace the result of a later visit in a loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.asl.program import Program, TaskState, WaitState
from holdfast.core import redriving
from holdfast.core.apply.apply import apply
from holdfast.core.decision import Decision, note_started
from holdfast.core.events import Event
from holdfast.core.facts import RedriveRequested, SkipRequested
from holdfast.core.flow import leave
from holdfast.core.state import Admission, Execution, Frame


def frames_to_skip(program: Program, state: Execution) -> list[Frame]:
    """Return the frames that are at a step which an operator can skip now."""
    frames = _open_frames(state).values()
    return [frame for frame in frames if may_skip(program, frame)]


def may_skip(program: Program, frame: Frame) -> bool:
    step = program.states.get(frame.position)
    return isinstance(step, TaskState | WaitState) and not isinstance(frame.waiting, Admission)


def step_of(state: Execution, fact: SkipRequested) -> Frame | None:
    frame = _open_frames(state).get(fact.frame)
    return frame if frame is not None and frame.entered_event == fact.entered_event else None


def _open_frames(state: Execution) -> Mapping[str, Frame]:
    """Return the open frames; for an ended execution the frames that a retry would open again."""
    if not state.is_ended:
        return state.frames
    if not state.resting or state.is_undone:
        return {}
    retry = Event("ExecutionRedriven", 0, 0, 0, {}, {"control": state.last_control})
    return apply(state, retry).frames


def is_skipped_by(state: Execution, fact: SkipRequested) -> bool:
    """Return True when the step is open, or when the failed execution would open it again at a
    redrive.
    """
    if fact.control_id <= state.last_control or step_of(state, fact) is None:
        return False
    return not state.is_ended or redriving.is_redriven_by(state, fact)


def skip(decision: Decision, fact: SkipRequested) -> None:
    if not is_skipped_by(decision.state, fact):
        return
    if decision.state.is_ended:
        redriving.redrive(decision, RedriveRequested(fact.control_id, fact.reason, fact.by))
        if decision.state.is_ended:
            # The facts that are applied with this one have already ended the execution again (see
            # `redriving.redrive`).
            return
    _skip_step(decision, fact)


def _skip_step(decision: Decision, fact: SkipRequested) -> None:
    frame = decision.frame(fact.frame)
    step = decision.state_of(frame)
    if not may_skip(decision.program, frame):
        return
    note_started(decision, frame)
    own: dict[str, Any] = {"control": fact.control_id, "reason": fact.reason, "by": fact.by}
    output = fact.output if isinstance(step, TaskState) else frame.input
    decision.emit(
        "StepSkipped",
        frame=frame.id,
        details={"name": frame.position, "output": output},
        **own,
    )
    assert isinstance(step, TaskState | WaitState)
    leave(
        decision,
        decision.frame(frame.id),
        step.next,
        (step.assign, step.output),
        default=output,
        extra={"result": output} if isinstance(step, TaskState) else None,
    )
