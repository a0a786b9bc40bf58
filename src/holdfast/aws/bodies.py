"""The body of a request in API Gateway's payload format 2.0."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from holdfast.errors import RequestError
from holdfast.limits import BODY_BYTES_MAX
from holdfast.runtime.storage.json_values import parse_json_once, require_plain


def text_of(request: Mapping[str, Any]) -> str:
    """Return the text of a body that `body_of` accepts."""
    return _bytes_of(request).decode()


def _bytes_of(request: Mapping[str, Any]) -> bytes:
    """Raises RequestError HF241, ValueError."""
    text = request.get("body") or ""
    if len(text) > BODY_BYTES_MAX:
        raise _too_long()
    is_binary = request.get("isBase64Encoded")
    raw = base64.b64decode(text, validate=True) if is_binary else text.encode()
    if len(raw) > BODY_BYTES_MAX:
        raise _too_long()
    return raw


def _too_long() -> RequestError:
    return RequestError("HF241", f"the body is over {BODY_BYTES_MAX} bytes", status=413)


def body_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object in the body. Raises RequestError HF241 to HF243."""
    try:
        raw = _bytes_of(request)
        value = parse_json_once(raw or b"{}")
    except (ValueError, RecursionError):
        raise RequestError(
            "HF242", "the body is not JSON", help="send UTF-8, with each field of an object once"
        ) from None
    if not isinstance(value, dict):
        raise RequestError("HF242", "the body is not a JSON object")
    require_plain(value, "the body")
    return value
