"""The request and response of an HTTP Task, as the inspection level TRACE shows them.

Source: API reference, InspectionDataRequest and InspectionDataResponse. The parts that a connection
adds to the request are secrets. They are not known here, so they are never shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from holdfast.asl.program import Json, State, TaskState
from holdfast.runtime.effects import TaskFailed, TaskSucceeded


def http_stages(
    state: State, arguments: Json, result: TaskSucceeded | TaskFailed
) -> dict[str, Any]:
    """Return {request, response} of a call that was made; {} when the task made no HTTP call."""
    if not isinstance(state, TaskState) or state.target != "http:invoke":
        return {}
    if not isinstance(arguments, dict):
        return {}
    shown: dict[str, Any] = {"request": _request(arguments)}
    if isinstance(result, TaskSucceeded) and isinstance(result.output, dict):
        shown["response"] = _response(shown["request"]["protocol"], result.output)
    return shown


def _request(arguments: Mapping[str, Json]) -> dict[str, str]:
    url = str(arguments.get("ApiEndpoint", ""))
    query = arguments.get("QueryParameters")
    if isinstance(query, dict) and query:
        url = f"{url}{'&' if '?' in url else '?'}{urlencode(query, doseq=True)}"
    request = {
        "protocol": urlsplit(url).scheme,
        "method": str(arguments.get("Method", "")),
        "url": url,
        "headers": _headers(arguments.get("Headers")),
    }
    if "RequestBody" in arguments:
        request["body"] = _body(arguments["RequestBody"])
    return request


def _response(protocol: str, result: Mapping[str, Json]) -> dict[str, str]:
    return {
        "protocol": protocol,
        "statusCode": str(result.get("StatusCode", "")),
        "statusMessage": str(result.get("StatusText", "")),
        "headers": _headers(result.get("Headers")),
        "body": _body(result.get("ResponseBody")),
    }


def _headers(headers: Json) -> str:
    """Return the headers as text: {"accept": ["a", "b"]} gives "[accept: a,b]"."""
    if not isinstance(headers, dict):
        return "[]"
    lines = (
        f"{name}: {','.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in headers.items()
    )
    return f"[{', '.join(lines)}]"


def _body(body: Json) -> str:
    if isinstance(body, str):
        return body
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)
