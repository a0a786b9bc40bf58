"""The data of a Task's events: its resource, its arguments, its bounds in time and in size."""

from __future__ import annotations

import functools
import json
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.program import Json, TaskState
from holdfast.asl.template import EvaluationError, StateError, Template
from holdfast.core.decision import Decision
from holdfast.core.events import TASK_EVENTS
from holdfast.core.state import Attempt, Awaiting, Frame
from holdfast.limits import PAYLOAD_BYTES_MAX, STATE_SECONDS_MAX

OWN_REGION: Final = "holdfast"
_SERVICE_PREFIX: Final = ":states:::"
# Kept, as `json.dumps` makes a new one for each value.
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def event_type(state: TaskState, what: str) -> str:
    """Return the event's type: "TaskScheduled", "LambdaFunctionScheduled" or "ActivityScheduled"
    for "Scheduled".
    """
    return f"{TASK_EVENTS.get(state.kind, 'Task')}{what}"


def resource_of(state: TaskState) -> dict[str, Any]:
    """Return type and name of the resource, which every Task… event repeats; Lambda's and
    activities' have none.
    """
    if state.kind in TASK_EVENTS:
        return {}
    resource_type, resource = _split(state.resource)
    return {"resourceType": resource_type, "resource": resource}


@functools.lru_cache(maxsize=1_024)
def _split(resource: str) -> tuple[str, str]:
    """Split a resource: arn:aws:states:::aws-sdk:s3:getObject gives aws-sdk:s3 and getObject."""
    _, is_service, action = resource.partition(_SERVICE_PREFIX)
    if not is_service:
        resource_type, _, name = resource.partition(":")
        return resource_type, name
    if action.startswith("aws-sdk:"):
        service, _, name = action.removeprefix("aws-sdk:").partition(":")
        return f"aws-sdk:{service}", name
    service, _, name = action.partition(":")
    return service, name


def scheduled_details(
    decision: Decision, frame: Frame, state: TaskState, token: str | None
) -> dict[str, Any]:
    """Return the details of …Scheduled. Raises StateError."""
    arguments = frame.input
    if state.arguments is not None:
        arguments = decision.evaluate(state.arguments, frame, token=token)
    if state.kind in TASK_EVENTS:
        details: dict[str, Any] = {"resource": state.resource, "input": arguments}
    else:
        region = _region(decision)
        details = {**resource_of(state), "region": region, "parameters": arguments}
    timeout = _seconds(decision, frame, state.timeout_seconds, "TimeoutSeconds")
    heartbeat = _seconds(decision, frame, state.heartbeat_seconds, "HeartbeatSeconds")
    if timeout is not None:
        details["timeoutInSeconds"] = timeout
    if heartbeat is not None:
        details["heartbeatInSeconds"] = heartbeat
    if state.credentials is not None:
        details["taskCredentials"] = _credentials(decision.evaluate(state.credentials, frame))
    return details


def _region(decision: Decision) -> str:
    origin = decision.state.origin
    return OWN_REGION if origin is None else origin["state_machine_arn"].split(":")[3]


def _credentials(value: Json) -> dict[str, Json]:
    role = value.get("RoleArn") if isinstance(value, dict) else None
    if not isinstance(role, str):
        raise StateError(
            error_names.RUNTIME, "The field 'RoleArn' of Credentials has to be a text."
        )
    return {"roleArn": role}


def _seconds(decision: Decision, frame: Frame, template: Template | None, where: str) -> int | None:
    if template is None:
        return None
    return whole_seconds(decision.evaluate(template, frame), where, least=1)


def whole_seconds(value: Json, where: str, *, least: int = 0) -> int:
    """Return `whole_number`, within AWS's bound of every number of seconds."""
    seconds = whole_number(value, where, least=least)
    if seconds > STATE_SECONDS_MAX:
        raise EvaluationError(where, f"{where} has to be at most {STATE_SECONDS_MAX}.")
    return seconds


def whole_number(value: Json, where: str, *, least: int = 0) -> int:
    """Return the value when it is a whole number from `least`, else an evaluation that failed."""
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    if not is_whole or value < least:  # type: ignore[operator]
        raise EvaluationError(where, f"{where} has to be a whole number from {least}.")
    return int(value)  # type: ignore[arg-type]


# -- starting --------------------------------------------------------------------------------------


def started_event(decision: Decision, frame: Frame, state: TaskState) -> int:
    """Emit the start of a task, as AWS does. For an inline task it is written together with the
    task's end.
    """
    if not isinstance(frame.waiting, Attempt):
        return frame.previous
    started, details = event_type(state, "Started"), resource_of(state)
    return decision.emit(started, frame=frame.id, previous=frame.previous, details=details)


def note_started(decision: Decision, *frames: Frame) -> None:
    """Emit the start of running attempts that are about to end: those of the frames, or all without
    frames.
    """
    for frame in frames or tuple(decision.state.frames.values()):
        state = decision.program.states.get(frame.position)
        is_running = isinstance(frame.waiting, Attempt) and frame.waiting.claim is not None
        if isinstance(state, TaskState) and is_running:
            started_event(decision, frame, state)


# -- size ------------------------------------------------------------------------------------------


def oversize(decision: Decision, what: str, value: Json) -> StateError | None:
    """Return the failure for data beyond AWS's quota between states, for state machines; a workflow
    has none.

    Source: AWS docs, "Step Functions service quotas"; the words were seen in recordings.
    """
    if not decision.is_bounded or not _is_over(value):
        return None
    cause = (
        f"The state/task '{what}' returned a result with a size exceeding "
        "the maximum number of bytes service limit."
    )
    return StateError(error_names.DATA_LIMIT_EXCEEDED, cause, is_whole=True)


def _is_over(value: Json) -> bool:
    if not isinstance(value, dict | list | str):
        return False
    text = _COMPACT.encode(value)
    # No character is longer than four bytes: most values need not be encoded to be measured.
    if len(text) * 4 <= PAYLOAD_BYTES_MAX:
        return False
    return len(text.encode(errors="surrogatepass")) > PAYLOAD_BYTES_MAX


def result_name(state: TaskState, waiting: Attempt | Awaiting) -> str:
    """Return AWS's name for a task whose result is too large: the function's ARN, or the
    service.
    """
    return waiting.target if state.kind in TASK_EVENTS else _split(state.resource)[0]
