"""The input of a start, and the data that connects an execution with its state machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.asl.program import Json
from holdfast.core.state import MachineOrigin
from holdfast.errors import RequestError
from holdfast.runtime.storage.json_values import require_plain
from holdfast.stepfunctions.catalogue import Service, Startable
from holdfast.stepfunctions.faults import StatesFault, validation


def origin_of(
    service: Service, startable: Startable, execution_arn: str, execution_name: str
) -> MachineOrigin:
    origin: MachineOrigin = {
        "execution_arn": execution_arn,
        "execution_name": execution_name,
        "state_machine_arn": startable.machine_arn,
        "state_machine_name": startable.name,
        "role_arn": startable.role_arn,
        "type": startable.type,
    }
    if service.payload_bytes_max is None:
        origin["is_unbounded"] = True
    if service.has_history_limit and startable.type == "STANDARD":
        origin["has_history_limit"] = True
    if startable.log is not None:
        origin["log"] = startable.log
    if startable.version_arn is not None:
        origin["version_arn"] = startable.version_arn
    if startable.alias_arn is not None:
        origin["alias_arn"] = startable.alias_arn
    return origin


def traced(origin: MachineOrigin, request: Mapping[str, Any]) -> MachineOrigin:
    """Return the origin with the X-Ray trace header of the request that starts the execution."""
    header = request.get("traceHeader")
    return origin if header is None else {**origin, "trace_header": str(header)}


def shown_trace(origin: MachineOrigin) -> dict[str, str]:
    """Return the member with the trace header, or {} when the start had none."""
    header = origin.get("trace_header")
    return {} if header is None else {"traceHeader": header}


def input_of(service: Service, request: Mapping[str, Any]) -> Json:
    """Return the request's input. Raises InvalidExecutionInput with the text of the Java library
    Jackson.

    In an object with a repeated field the last value counts.
    """
    text = str(request.get("input", "{}"))
    limit = service.payload_bytes_max
    if limit is not None and len(text) * 4 > limit and len(text.encode()) > limit:
        raise validation(
            "1 validation error detected: Value at 'input' failed to satisfy constraint: Member "
            f"must have length less than or equal to {limit}"
        )
    problem = json_problem(text)
    if problem is not None:
        raise StatesFault(
            "InvalidExecutionInput", f"Invalid State Machine Execution Input: '{problem}'"
        )
    return json.loads(text)  # type: ignore[no-any-return]


def json_problem(text: str) -> str | None:
    """Return AWS's message for text that is no JSON or cannot be stored; None for valid text."""
    try:
        require_plain(json.loads(text, parse_constant=_refuse), "the value")
    except RequestError as error:
        return f"com.fasterxml.jackson.core.exc.StreamConstraintsException: {error.message}"
    except (ValueError, RecursionError):
        pass
    else:
        return None
    # Imported here because a request with valid JSON does not need it.
    from holdfast.asl.json_text import JsonDepthError, JsonTextError, read_json  # noqa: PLC0415

    try:
        read_json(text)
    except JsonTextError as error:
        return f"{error.exception}: {error.message}"
    except JsonDepthError:
        return "com.fasterxml.jackson.core.exc.StreamConstraintsException: it is nested too deeply"
    return "com.fasterxml.jackson.core.JsonParseException: it is no JSON"


def _refuse(name: str) -> None:
    raise ValueError(name)
