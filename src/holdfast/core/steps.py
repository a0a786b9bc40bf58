"""The eight types of states: what each does on entry, and when its wait ends."""

from __future__ import annotations

from typing import Any, assert_never

from holdfast.asl import error_names
from holdfast.asl.program import (
    ChoiceState,
    DistributedMap,
    FailState,
    Json,
    MapState,
    ParallelState,
    PassState,
    SucceedState,
    TaskState,
    WaitState,
)
from holdfast.asl.template import EvaluationError, StateError, Template
from holdfast.asl.timestamps import nanos_of
from holdfast.core import cancelling, lanes, map_run
from holdfast.core.decision import Decision, whole_seconds
from holdfast.core.flow import Failure, fail_state, leave, pass_on, schedule
from holdfast.core.state import Frame
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX


def run(decision: Decision, frame: Frame) -> None:
    """Evaluate the state that the frame has entered, up to the first wait."""
    if frame.cancelled is not None and cancelling.is_taken(decision, frame):
        return
    if decision.program.deadlines:
        if not _begin_block(decision, frame):
            return
        frame = decision.frame(frame.id)
    state = decision.state_of(frame)
    match state:
        case PassState():
            _pass(decision, frame, state)
        case SucceedState():
            leave(decision, frame, None, (None, state.output), default=frame.input)
        case FailState():
            _fail(decision, frame, state)
        case ChoiceState():
            _choose(decision, frame, state)
        case WaitState():
            _wait(decision, frame, state)
        case TaskState():
            schedule(decision, frame, state)
        case MapState(run=DistributedMap()):
            map_run.begin(decision, frame, state)
        case ParallelState() | MapState():
            lanes.start(decision, frame, state)
        case _:
            assert_never(state)


def _begin_block(decision: Decision, frame: Frame) -> bool:
    """Start the clock of a block. Return False when its time-out could not be computed; the state
    has then failed.
    """
    try:
        cancelling.begin_block(decision, frame)
    except StateError as error:
        fail_state(decision, frame, error)
        return False
    return True


def _pass(decision: Decision, frame: Frame, state: PassState) -> None:
    extra: dict[str, Json] = {}
    try:
        if state.publish is not None:
            _publish(decision, frame, state.publish)
        if state.note is not None:
            _note(decision, frame, state.note)
        if state.result is not None:
            extra["result"] = decision.evaluate(state.result, frame)
    except StateError as error:
        fail_state(decision, frame, error)
        return
    results = (state.assign, state.output)
    leave(decision, frame, state.next, results, default=frame.input, extra=extra)


def _publish(decision: Decision, frame: Frame, template: Template) -> None:
    values = decision.evaluate(template, frame)
    assert isinstance(values, dict)
    for name, value in values.items():
        decision.emit("Published", frame=frame.id, name=name, value=value)


def _note(decision: Decision, frame: Frame, template: Template) -> None:
    """Set search attributes. An attribute that already has the value causes no event."""
    # Imported here for cold starts: most workflows have no search attributes.
    from holdfast.core.attributes import attribute_of  # noqa: PLC0415

    values = decision.evaluate(template, frame)
    assert isinstance(values, dict)
    for name, given in values.items():
        assert isinstance(given, dict)
        ((kind, value),) = given.items()
        attribute = None if value is None else attribute_of(kind, value)
        if attribute is None and value is not None:
            cause = f"The search attribute {name} must be of type {kind}."
            raise StateError(error_names.QUERY_EVALUATION_ERROR, cause)
        if decision.state.attributes.get(name) != attribute:
            kept = None if attribute is None else attribute.value
            decision.emit("Noted", frame=frame.id, name=name, kind=kind, value=kept)


def wake(decision: Decision, frame: Frame) -> None:
    """Continue a Wait whose timer has fired, or retry a Parallel or Map whose delay has passed."""
    state = decision.state_of(frame)
    match state:
        case WaitState():
            leave(decision, frame, state.next, (state.assign, state.output), default=frame.input)
        case _:
            run(decision, frame)


def _fail(decision: Decision, frame: Frame, state: FailState) -> None:
    try:
        error = _text(decision, frame, state.error, ERROR_CHARACTERS_MAX)
        cause = _text(decision, frame, state.cause, CAUSE_CHARACTERS_MAX)
    except StateError as failed:
        fail_state(decision, frame, failed)
        return
    pass_on(decision, frame, Failure(error, cause))


def _text(
    decision: Decision, frame: Frame, template: Template | None, characters_max: int
) -> str | None:
    if template is None:
        return None
    return str(decision.evaluate(template, frame))[:characters_max]


def _choose(decision: Decision, frame: Frame, state: ChoiceState) -> None:
    try:
        for rule in state.rules:
            # The result is either True or False, because `evaluate` fails the state for any other
            # value of a condition.
            if decision.evaluate(rule.condition, frame):
                results = (rule.assign, rule.output)
                leave(decision, frame, rule.next, results, default=frame.input)
                return
    except StateError as error:
        fail_state(decision, frame, error)
        return
    if state.default is not None:
        results = (state.assign, state.output)
        leave(decision, frame, state.default, results, default=frame.input)
        return
    cause = "Failed to transition out of the state. The state does not point to a next state."
    fail_state(decision, frame, StateError(error_names.NO_CHOICE_MATCHED, cause))


def _wait(decision: Decision, frame: Frame, state: WaitState) -> None:
    try:
        due_ms, is_due = _due(decision, frame, state)
    except StateError as error:
        fail_state(decision, frame, error)
        return
    if is_due:
        leave(decision, frame, state.next, (state.assign, state.output), default=frame.input)
        return
    entry = decision.state.next_entry
    decision.emit("TimerSet", frame=frame.id, entry=entry, due=due_ms)


def _due(decision: Decision, frame: Frame, state: WaitState) -> tuple[int, bool]:
    """Return the end of the wait, and True when it has passed on every clock: the clock of this
    host may be ahead of the others.
    """
    now_ms, margin_ms = decision.moment.now_ms, 2 * decision.moment.clock_error_ms
    if state.seconds is not None:
        seconds = whole_seconds(decision.evaluate(state.seconds, frame), "Seconds")
        return now_ms + seconds * 1_000, seconds == 0
    assert state.timestamp is not None
    due_ms = _parse_timestamp(decision.evaluate(state.timestamp, frame))
    return due_ms, due_ms <= now_ms - margin_ms


def _parse_timestamp(value: Any) -> int:
    """Return the time in an RFC 3339 text with an offset, as ASL requires. AWS refuses other
    forms.
    """
    nanos = nanos_of(value) if isinstance(value, str) else None
    if nanos is None:
        from holdfast.asl.field_errors import FieldSource  # noqa: PLC0415  # for cold starts

        what = "cannot be parsed as an ISO-8601 extended offset date-time format string"
        cause = FieldSource("Timestamp").unparsable(what, value)
        raise EvaluationError("Timestamp", cause, is_late=True)
    return nanos // 1_000_000
