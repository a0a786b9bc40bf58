"""The bounds of a distributed Map: children at once, and failed items that it tolerates.

They are evaluated when the map run begins, and again when its items are known. While the run goes
on, UpdateMapRun may change each of them (AWS docs, UpdateMapRun). A change that arrives before the
items are known is kept in the arguments of the attempt that reads them, so `ChildrenStarted` uses
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.asl.program import Json, MapState
from holdfast.asl.template import EvaluationError
from holdfast.core.bounds import CHANGED, Bounds
from holdfast.core.decision import Decision, whole_number
from holdfast.core.facts import BoundsRequested
from holdfast.core.state import Attempt, Frame


def bounds_of(decision: Decision, frame: Frame, state: MapState) -> Bounds:
    """Evaluate the bounds in the definition. Raises StateError."""
    run = state.run
    assert run is not None
    concurrency = 0
    if state.concurrency_max is not None:
        value = decision.evaluate(state.concurrency_max, frame)
        concurrency = whole_number(value, "MaxConcurrency")
    count, percentage = run.tolerated_count, run.tolerated_percentage
    return Bounds(
        concurrency,
        None if count is None else tolerated_count(decision.evaluate(count, frame)),
        None if percentage is None else tolerated_percentage(decision.evaluate(percentage, frame)),
    )


def changed_while_reading(frame: Frame) -> Mapping[str, Any]:
    """Return the changes that arrived while an attempt read the items."""
    waiting = frame.waiting
    if not isinstance(waiting, Attempt) or not isinstance(waiting.arguments, dict):
        return {}
    changes: Mapping[str, Any] = waiting.arguments.get(CHANGED, {})
    return changes


def change(decision: Decision, fact: BoundsRequested) -> Frame | None:
    """Record the change, and return the frame of the Map; None when the map run has ended."""
    state = decision.state
    frame = state.frame_of(fact.entry)
    if state.is_ended or fact.control_id <= state.last_control or frame is None:
        return None
    decision.emit("MapRunUpdated", frame=frame.id, control=fact.control_id, **fact.wanted)
    return decision.frame(frame.id)


def tolerated_count(value: Json) -> int:
    """Return the number of items that may fail. Raises EvaluationError."""
    return whole_number(value, "ToleratedFailureCount")


def tolerated_percentage(value: Json) -> float:
    """Return the share of items that may fail. Raises EvaluationError."""
    field = "ToleratedFailurePercentage"
    assert isinstance(value, int | float)
    if not 0 <= value <= 100:
        raise EvaluationError(field, f"{field} must be between 0 and 100.", is_late=True)
    return value
