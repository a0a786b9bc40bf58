"""Plain JSON: what can be stored, sent and read back as it was."""

from __future__ import annotations

import json
from typing import Any

from holdfast.errors import RequestError
from holdfast.limits import JSON_DEPTH_MAX, VALUE_BYTES_MAX


def require_plain(value: Any, what: str) -> None:
    """Raises RequestError HF243: too deep, a number that is none, or text that is no Unicode."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > JSON_DEPTH_MAX:
            raise RequestError("HF243", f"{what} is nested deeper than {JSON_DEPTH_MAX} levels")
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += [*item.keys(), *item.values()]
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str) and not is_unicode(item):
                raise RequestError("HF243", f"{what} holds a lone surrogate")
            elif isinstance(item, float) and not -1e309 < item < 1e309:
                raise RequestError("HF243", f"{what} holds a number that JSON does not know")
        level = below


def plain_text(value: Any, what: str) -> str:
    """-> compact JSON. Raises RequestError: HF243, or HF244 when it is too large to be kept."""
    require_plain(value, what)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if len(text.encode()) > VALUE_BYTES_MAX:
        raise RequestError("HF244", f"{what} is over {VALUE_BYTES_MAX} bytes", status=413)
    return text


def is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """-> the text with what is no Unicode replaced."""
    return text.encode(errors="replace").decode()
