"""Lambda functions, which a definition can call in two ways.

Named by its ARN, a function gets the state's input, and its result is the task's result; the cause
of a failure is the text of Lambda's runtime. Through `lambda:invoke` the result is the whole
response, and the cause is written again without blanks (as recordings show).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.integrations.metadata import sdk_metadata
from holdfast.integrations.problems import Unusable
from holdfast.integrations.shaping import require_text, to_text
from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from holdfast.service_names import unsupported_field

INVOKE_FIELDS: Final = frozenset(
    {"FunctionName", "Payload", "Qualifier", "ClientContext", "InvocationType", "LogType"}
)
_RESPONSE_FIELDS: Final = ("ExecutedVersion", "LogResult", "StatusCode")


@dataclass(frozen=True, slots=True)
class _Answer:
    response: Mapping[str, Any]
    body: bytes


def call_function(client: Any, arn: str, argument: Any) -> TaskSucceeded | TaskFailed:
    """Call a function that the definition names by its ARN. Raises botocore's errors."""
    answer = _invoke(client, {"FunctionName": arn, "Payload": _payload(argument)})
    if "FunctionError" in answer.response:
        return _failure(answer.body, is_verbatim=True)
    return TaskSucceeded(_parsed(answer.body))


def invoke(client: Any, arguments: Mapping[str, Any]) -> TaskSucceeded | TaskFailed:
    """Perform `lambda:invoke`. Raises Unusable and botocore's errors."""
    answer = _invoke(client, invoke_request(arguments))
    if "FunctionError" in answer.response:
        return _failure(answer.body, is_verbatim=False)
    shown = {name: answer.response[name] for name in _RESPONSE_FIELDS if name in answer.response}
    payload = _parsed(answer.body) if answer.body else None
    output = {**shown, "Payload": payload, **sdk_metadata(answer.response)}
    return TaskSucceeded(dict(sorted(output.items())))


def invoke_request(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return botocore's request. A Payload that is text is sent unchanged, as JSON."""
    for field in arguments:
        if field not in INVOKE_FIELDS:
            raise Unusable(unsupported_field(field))
    given = {field: value for field, value in arguments.items() if value is not None}
    if "FunctionName" not in given:
        raise Unusable("The field 'FunctionName' is required but was missing")
    payload = given.pop("Payload", {})
    context = given.pop("ClientContext", None)
    request: dict[str, Any] = {field: require_text(value, field) for field, value in given.items()}
    request["Payload"] = to_text(payload).encode()
    if context is not None:
        request["ClientContext"] = _client_context(context)
    return request


def _client_context(context: Any) -> str:
    """Return the client context in base 64, as Lambda requires; the definition may have it as
    JSON.
    """
    if isinstance(context, str):
        return context
    return base64.b64encode(to_text(context).encode()).decode()


def _payload(argument: Any) -> bytes:
    return json.dumps(argument, separators=(",", ":"), ensure_ascii=False).encode()


def _invoke(client: Any, request: dict[str, Any]) -> _Answer:
    response = client.invoke(**request)
    return _Answer(response, response["Payload"].read())


def _parsed(body: bytes) -> Any:
    text = body.decode(errors="replace")
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _failure(body: bytes, *, is_verbatim: bool) -> TaskFailed:
    payload = _parsed(body)
    error = payload.get("errorType") if isinstance(payload, dict) else None
    if not isinstance(error, str):
        return TaskFailed(
            "Lambda.Unknown",
            "The cause could not be determined because Lambda did not return an error type. "
            f"Returned payload: {body.decode(errors='replace')}",
        )
    return TaskFailed(error, body.decode(errors="replace") if is_verbatim else to_text(payload))
