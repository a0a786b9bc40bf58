"""The request and response of an HTTP Task, as the inspection level TRACE shows them.

Sources: API reference, InspectionDataRequest and InspectionDataResponse; Developer Guide, "Testing
state machines with TestState API". Headers are one text: `[accept: a,b, range: bytes=0-9]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from holdfast.runtime.effects import HttpExchange


def http_stages(exchange: HttpExchange | None) -> dict[str, Any]:
    """Return {request, response?}; {} when the task sent no HTTP request."""
    if exchange is None:
        return {}
    protocol = urlsplit(exchange.url).scheme
    request = {
        "protocol": protocol,
        "method": exchange.method,
        "url": exchange.url,
        "headers": _headers(exchange.headers),
    }
    if exchange.body is not None:
        request["body"] = exchange.body
    if exchange.status is None:
        return {"request": request}
    response = {
        "protocol": protocol,
        "statusCode": str(exchange.status),
        "statusMessage": _phrase(exchange.status),
        "headers": _headers(exchange.response_headers),
        "body": exchange.response_body,
    }
    return {"request": request, "response": response}


def _headers(headers: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{name}: {value}' for name, value in headers.items())}]"


def _phrase(status: int) -> str:
    """Return the reason phrase; "" for a status that no standard names."""
    return HTTPStatus(status).phrase if status in {*HTTPStatus} else ""
