"""Redrive: an ended execution that has not succeeded continues where it stopped.

Rules of this file (docs/explanation/repair.md shows them):
* The states that were open at the end are evaluated again. Finished work is not repeated.
* A redrive applies to one end. A request that was stored before that end has no effect.
"""

from __future__ import annotations

from typing import Any

from holdfast.core import cancelling, map_run
from holdfast.core.apply.map_run import children_to_resume
from holdfast.core.decision import Decision
from holdfast.core.facts import RedriveRequested, SkipRequested
from holdfast.core.state import Execution
from holdfast.limits import CLOCK_ERROR_MS


def is_redriven_by(state: Execution, fact: RedriveRequested | SkipRequested) -> bool:
    """Return True when the request applies to the present end of the execution.

    A request that was stored while the execution still ran, or before an earlier end, is ignored:
    its requester has not seen the present end. Ids of control messages begin with their time, so an
    older request has a smaller id.
    """
    if fact.control_id <= state.last_control or not state.resting or state.is_undone:
        return False
    if isinstance(fact, RedriveRequested) and fact.round:
        return state.parent is not None and fact.round > state.parent.get("round", 0)
    assert state.stopped_ms is not None
    return fact.control_id >= f"{state.stopped_ms - 2 * CLOCK_ERROR_MS:015d}"


def redrive(decision: Decision, fact: RedriveRequested) -> None:
    """Continue an ended execution. As on AWS, only an execution that has not succeeded can
    continue, and its time-out counts from now.

    A redrive must be the first fact of its record. If an end came before it in the same record, the
    commands that follow that end would never be carried out: the execution's entry in the list
    would stay as it was. The requester also cannot have seen that end.
    """
    state = decision.state
    if decision.events or not is_redriven_by(state, fact):
        return
    own: dict[str, Any] = {"control": fact.control_id}
    words = {"reason": fact.reason, "by": fact.by}
    own |= {name: text for name, text in words.items() if text is not None}
    if fact.round:
        own["round"] = fact.round
    if decision.program.timeout_seconds is not None:
        own["due"] = decision.moment.now_ms + decision.program.timeout_seconds * 1_000
    map_runs = [one.id for one in state.resting.values() if children_to_resume(one.waiting)]
    if map_runs:
        own["map_runs"] = map_runs
    details = {"redriveCount": state.redrives + 1}
    decision.emit("ExecutionRedriven", previous=state.last_event, details=details, **own)
    for frame_id in map_runs:
        map_run.go_on(decision, frame_id)
    for frame in state.resting.values():
        for due in frame.deadlines if frame.id in decision.state.frames else ():
            cancelling.set_deadline(decision, frame.id, due.number, due.seconds)
    decision.reenter()
