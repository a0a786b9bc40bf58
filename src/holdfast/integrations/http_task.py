"""HTTP tasks: `http:invoke` calls an HTTPS endpoint with the credentials of an EventBridge
connection.

The values of the connection take precedence over those of the definition. A response is read as
text, and JSON is parsed. A status of 400 and above is the error `States.Http.StatusCode.<status>`,
a failed connection `States.Http.Socket`, and content that is no text `States.Runtime`. Source: AWS
docs, "Call HTTPS APIs in Step Functions workflows".
"""

from __future__ import annotations

import http
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from holdfast.asl import error_names
from holdfast.errors import HoldfastError
from holdfast.integrations import faults
from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.connections import Authorization, authorization_of
from holdfast.integrations.exchange import Request, Response, exchange
from holdfast.integrations.problems import Unusable
from holdfast.integrations.shaping import to_text
from holdfast.limits import PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import HttpExchange, RunTask, TaskFailed, TaskSucceeded
from holdfast.service_names import unsupported_field

TIMEOUT_SECONDS: Final = 60  # Step Functions quota for the call of an HTTP task
USER_AGENT: Final = "Amazon|StepFunctions|HttpInvoke|{region}"
METHODS: Final = frozenset({"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"})
FORM: Final = "application/x-www-form-urlencoded"

_FIELDS: Final = frozenset(
    {
        "ApiEndpoint",
        "Method",
        "Headers",
        "QueryParameters",
        "RequestBody",
        "Transform",
        "Authentication",
        "InvocationConfig",
    }
)
_REQUIRED: Final = ("ApiEndpoint", "Method")
_FORBIDDEN_HEADERS: Final = frozenset(
    {
        "authorization",
        "connection",
        "content-md5",
        "date",
        "expect",
        "host",
        "max-forwards",
        "proxy-authenticate",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
        "www-authenticate",
    }
)
_FORBIDDEN_PREFIXES: Final = ("x-forwarded", "x-amz", "x-amzn")
_BINARY_TYPES: Final = ("image/", "video/", "audio/", "application/octet-stream")


def invoke(effect: RunTask, clients: ServiceClients) -> TaskSucceeded | TaskFailed:
    """Call the HTTP endpoint. Raises Unusable, and botocore's errors when the connection cannot be
    read.
    """
    arguments = effect.arguments or {}
    require_fields(arguments)
    connection = _connection_arn(arguments)
    authorization = (
        Authorization() if connection is None else authorization_of(connection, effect, clients)
    )
    request = _request_of(arguments, authorization, clients.region)
    result, response = _send(request, arguments["ApiEndpoint"])
    if effect.trace is None:
        return result
    if effect.trace == "PUBLIC":
        request = _public_request(arguments, clients.region)
    return replace(result, exchange=_exchange_of(request, response))


def _public_request(arguments: Mapping[str, Any], region: str) -> Request:
    """Return the request without the parts that a connection has added."""
    try:
        return _request_of(arguments, Authorization(), region)
    except Unusable:
        # Only with the content type of the connection can this body be encoded.
        return _request_of({**arguments, "RequestBody": None}, Authorization(), region)


def _exchange_of(request: Request, response: Response | None) -> HttpExchange:
    sent = None if request.body is None else request.body.decode()
    told = (request.method, request.url, request.headers, sent)
    if response is None:
        return HttpExchange(*told, None, {}, "")
    text = _text(response.body) or ""  # content that is no text is not shown
    return HttpExchange(*told, response.status, response.headers, text)


def require_fields(arguments: Mapping[str, Any]) -> None:
    for field in arguments:
        if field not in _FIELDS:
            raise Unusable(unsupported_field(field))
    for field in _REQUIRED:
        if not isinstance(arguments.get(field), str):
            raise Unusable(f"The field '{field}' is required but was missing")
    if arguments["Method"] not in METHODS:
        raise Unusable(f"The value for the field 'Method' must be one of {sorted(METHODS)}")
    if urlsplit(arguments["ApiEndpoint"]).scheme != "https":
        raise Unusable("The value for the field 'ApiEndpoint' must be an HTTPS URL")


def _connection_arn(arguments: Mapping[str, Any]) -> str | None:
    """Return the connection's ARN. For a private connection it is in InvocationConfig, otherwise in
    Authentication.
    """
    for field in ("Authentication", "InvocationConfig"):
        arn = (arguments.get(field) or {}).get("ConnectionArn")
        if isinstance(arn, str):
            return arn
    return None


def _request_of(arguments: Mapping[str, Any], authorization: Authorization, region: str) -> Request:
    query = {**(arguments.get("QueryParameters") or {}), **authorization.query}
    headers = {
        **own_headers(arguments.get("Headers") or {}),
        **authorization.headers,
        "user-agent": USER_AGENT.format(region=region),
        "range": f"bytes=0-{PAYLOAD_BYTES_MAX}",
    }
    body = _merged_body(arguments.get("RequestBody"), authorization.body)
    if body is not None and "content-type" not in headers:
        headers["content-type"] = "application/json"
    url = arguments["ApiEndpoint"]
    if query:
        url += ("&" if "?" in url else "?") + urlencode(_pairs(query, "REPEAT"))
    return Request(arguments["Method"], url, headers, _encoded(body, headers, arguments))


def own_headers(headers: Any) -> dict[str, str]:
    """Return the headers of the definition, with names in lower case. Raises Unusable.

    A definition cannot set headers that proxies, servers or signatures interpret. Source: AWS docs,
    "Create API Gateway REST APIs with Step Functions".
    """
    if not isinstance(headers, Mapping):
        raise Unusable("The value of the field 'Headers' has an invalid format")
    lower = {name.lower(): value for name, value in headers.items()}
    forbidden = [
        name for name in lower if name in _FORBIDDEN_HEADERS or name.startswith(_FORBIDDEN_PREFIXES)
    ]
    if forbidden:
        names = ", ".join(sorted(forbidden))
        raise Unusable(f"The 'Headers' field contains unsupported values: [{names}]")
    return {
        name: ", ".join(map(to_text, value)) if isinstance(value, list) else to_text(value)
        for name, value in lower.items()
    }


def _merged_body(body: Any, authorized: Mapping[str, Any]) -> Any:
    if not authorized:
        return body
    return {**(body if isinstance(body, dict) else {}), **authorized}


def _encoded(body: Any, headers: Mapping[str, str], arguments: Mapping[str, Any]) -> bytes | None:
    if body is None:
        return None
    transform = arguments.get("Transform") or {}
    if transform.get("RequestBodyEncoding") == "URL_ENCODED" and isinstance(body, dict):
        if not headers["content-type"].startswith(FORM):
            raise Unusable(f"The header 'content-type' must be '{FORM}' for a URL-encoded body")
        options = transform.get("RequestEncodingOptions") or {}
        return urlencode(_pairs(body, options.get("ArrayFormat", "INDICES"))).encode()
    return to_text(body).encode()


def _pairs(value: Mapping[str, Any], array_format: str) -> list[tuple[str, str]]:
    """Return the pairs in the given format: {"a": [1, 2]} gives a=1&a=2, a[0]=1&a[1]=2, a[]=1&a[]=2
    or a=1,2.
    """
    pairs: list[tuple[str, str]] = []
    for key, part in value.items():
        pairs += _pairs_of(key, part, array_format)
    return pairs


def _pairs_of(key: str, value: Any, array_format: str) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        inner = {f"{key}[{name}]": part for name, part in value.items()}
        return _pairs(inner, array_format)
    if not isinstance(value, list):
        return [(key, "" if value is None else to_text(value))]
    match array_format:
        case "NONE":
            return [(key, to_text(value))]
        case "COMMAS":
            return [(key, ",".join(map(to_text, value)))]
        case "BRACKETS":
            return [pair for part in value for pair in _pairs_of(f"{key}[]", part, array_format)]
        case "REPEAT":
            return [pair for part in value for pair in _pairs_of(key, part, array_format)]
        case _:
            items = {f"{key}[{index}]": part for index, part in enumerate(value)}
            return _pairs(items, array_format)


def _send(request: Request, endpoint: str) -> tuple[TaskSucceeded | TaskFailed, Response | None]:
    """Return the result, and the response if one came. botocore's own messages are replaced,
    because they contain the URL or a header, and so the secrets of a connection.
    """
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    try:
        response = exchange(request, TIMEOUT_SECONDS, PAYLOAD_BYTES_MAX + 1)
    except BotoCoreError as error:
        cause = f"Unable to call {endpoint}: {type(error).__name__}"
        return TaskFailed(error_names.HTTP_SOCKET, cause), None
    except HoldfastError as error:
        # The local cloud lets nothing out. A trace still shows what would have been sent.
        return faults.unreachable("Http", error, is_sdk=False), None
    return result_of(response), response


def result_of(response: Response) -> TaskSucceeded | TaskFailed:
    """Return the task's result or error for the response of the endpoint."""
    content_type = response.headers.get("content-type", "")
    if len(response.body) > PAYLOAD_BYTES_MAX:
        return TaskFailed(
            error_names.DATA_LIMIT_EXCEEDED,
            "The state/task 'http' returned a result with a size exceeding the maximum number of "
            "bytes service limit.",
        )
    text = _text(response.body)
    if text is None or content_type.startswith(_BINARY_TYPES):
        return TaskFailed(error_names.RUNTIME, "The response of the HTTP endpoint is not a text")
    body = _parsed(text, content_type)
    if response.status >= 400:
        return TaskFailed(f"{error_names.HTTP_STATUS_CODE_PREFIX}{response.status}", to_text(body))
    return TaskSucceeded(
        {
            "Headers": {name: [value] for name, value in response.headers.items()},
            "ResponseBody": body,
            "StatusCode": response.status,
            "StatusText": _phrase(response.status),
        }
    )


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _parsed(text: str, content_type: str) -> Any:
    if "json" not in content_type:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""
