"""Converts an HTTP request to API Gateway's event, and the handler's response to an HTTP response.

The event has the payload format 2.0 of an HTTP API. `serve` and the demo pass it to the handler of
the deployed API, so a local machine runs the same code as an account.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

LOOPBACK: Final = "127.0.0.1"
ACCOUNT: Final = "123456789012"  # moto's account
REGION: Final = "us-east-1"
STAGE: Final = "$default"

_numbers: Final = itertools.count(1)


def event_of(
    method: str, target: str, headers: Mapping[str, str], body: bytes, now_ms: int
) -> dict[str, Any]:
    """Return the event. `target` is path and query of the request line, percent-encoded; the names
    of `headers` are in lower case.
    """
    url = urlsplit(target)
    path = unquote(url.path)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": STAGE,
        "rawPath": path,
        "rawQueryString": url.query,
        "headers": dict(headers),
        "requestContext": _context(method, path, headers, now_ms),
        **_body(body),
    }
    query = _query(url.query)
    return {**event, "queryStringParameters": query} if query else event


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The response of the API's handler. The names of `headers` are as the handler writes them."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def answer_of(response: Mapping[str, Any]) -> HttpAnswer:
    body = str(response.get("body") or "")
    is_encoded = bool(response.get("isBase64Encoded"))
    content = base64.b64decode(body) if is_encoded else body.encode()
    return HttpAnswer(int(response["statusCode"]), content, response.get("headers") or {})


def _context(method: str, path: str, headers: Mapping[str, str], now_ms: int) -> dict[str, Any]:
    now = datetime.fromtimestamp(now_ms / 1_000, UTC)
    host = headers.get("host", LOOPBACK)
    return {
        "accountId": ACCOUNT,
        "apiId": "local",
        "domainName": host,
        "domainPrefix": host.partition(".")[0],
        "http": {
            "method": method,
            "path": path,
            "protocol": "HTTP/1.1",
            "sourceIp": LOOPBACK,
            "userAgent": headers.get("user-agent", ""),
        },
        "requestId": f"local-{next(_numbers)}",
        "routeKey": STAGE,
        "stage": STAGE,
        "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
        "timeEpoch": now_ms,
    }


def _query(text: str) -> dict[str, str]:
    """Return the query parameters. As in API Gateway, the values of a repeated parameter are joined
    by commas.
    """
    query: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    return query


def _body(body: bytes) -> dict[str, Any]:
    if not body:
        return {"isBase64Encoded": False}
    try:
        return {"body": body.decode(), "isBase64Encoded": False}
    except UnicodeDecodeError:
        return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
