"""`apigateway:invoke`: a call of a deployed REST or HTTP API.

If AuthType requires it, the call is signed with the role of the stack or of the task. A status of
400 and above is the error `ApiGateway.<status>`; its cause is the body. Source: AWS docs, "Create
API Gateway REST APIs with Step Functions".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from holdfast.asl import error_names
from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.exchange import Request, Response, exchange
from holdfast.integrations.http_task import own_headers, result_of
from holdfast.integrations.problems import Unusable
from holdfast.integrations.shaping import to_text
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.service_names import unsupported_field

TIMEOUT_SECONDS: Final = 30  # API Gateway quota: an integration's time-out, plus one second
SIGNED: Final = frozenset({"IAM_ROLE", "RESOURCE_POLICY"})

_FIELDS: Final = frozenset(
    {
        "ApiEndpoint",
        "Method",
        "Headers",
        "Stage",
        "Path",
        "QueryParameters",
        "RequestBody",
        "AllowNullValues",
        "AuthType",
    }
)


def invoke(effect: RunTask, clients: ServiceClients) -> TaskSucceeded | TaskFailed:
    """Call the API. Raises Unusable, and botocore's errors if it does not answer."""
    request = request_of(effect.arguments or {})
    if (effect.arguments or {}).get("AuthType") in SIGNED:
        request = _signed(request, effect, clients)
    return _judged(exchange(request, TIMEOUT_SECONDS, PAYLOAD_BYTES_MAX + 1))


def _judged(response: Response) -> TaskSucceeded | TaskFailed:
    result = result_of(response)
    match result:
        case TaskFailed(error=str() as error) if error.startswith(
            error_names.HTTP_STATUS_CODE_PREFIX
        ):
            return TaskFailed(f"ApiGateway.{response.status}", result.cause)
        case _:
            return result


def request_of(arguments: Mapping[str, Any]) -> Request:
    for field in arguments:
        if field not in _FIELDS:
            raise Unusable(unsupported_field(field))
    for field in ("ApiEndpoint", "Method"):
        if not isinstance(arguments.get(field), str):
            raise Unusable(f"The field '{field}' is required but was missing")
    for field in ("Headers", "QueryParameters"):
        if not isinstance(arguments.get(field), Mapping | None):
            raise Unusable(f"The value of the field '{field}' has an invalid format")
    body = arguments.get("RequestBody")
    headers = own_headers(arguments.get("Headers") or {})
    if body is not None:
        headers.setdefault("content-type", "application/json")
    return Request(
        arguments["Method"],
        _url(arguments),
        headers,
        None if body is None else to_text(body).encode(),
    )


def _url(arguments: Mapping[str, Any]) -> str:
    steps = [arguments["ApiEndpoint"].rstrip("/")]
    steps += [quote(part.strip("/"), safe="/") for part in _path(arguments)]
    query = {
        name: value if isinstance(value, list) else [value]
        for name, value in _of(arguments, "QueryParameters").items()
    }
    pairs = [(name, to_text(part)) for name, values in query.items() for part in values]
    return f"https://{'/'.join(steps)}" + (f"?{urlencode(pairs)}" if pairs else "")


def _path(arguments: Mapping[str, Any]) -> list[str]:
    return [str(arguments[field]) for field in ("Stage", "Path") if arguments.get(field)]


def _of(arguments: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    return arguments.get(field) or {}


def _signed(request: Request, effect: RunTask, clients: ServiceClients) -> Request:
    from botocore.auth import SigV4Auth  # noqa: PLC0415
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415

    credentials = clients.credentials(effect.credentials)
    unsigned = AWSRequest(request.method, request.url, dict(request.headers), request.body)
    SigV4Auth(credentials, "execute-api", clients.region).add_auth(unsigned)
    headers = {name.lower(): value for name, value in unsigned.headers.items()}
    return Request(request.method, request.url, headers, request.body)
