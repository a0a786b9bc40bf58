"""JSON values: checks that a value can be stored, sent and read back unchanged."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from holdfast.errors import RequestError
from holdfast.limits import JSON_DEPTH_MAX, VALUE_BYTES_MAX

#: The greatest number that double precision can represent. JavaScript and other readers of JSON
#: could not read a greater one.
NUMBER_MAX: Final = sys.float_info.max
_NUMBERS: Final = (int, float)
#: `json.dumps` with settings makes an encoder for each call.
_compact: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def parse_json(raw: bytes) -> Any:
    """Return the JSON value in the body of a request. It must be UTF-8; Python would also accept
    UTF-16 and UTF-32.

    Raises ValueError and RecursionError.
    """
    return json.loads(raw.decode(), parse_constant=_refuse_constant)


def parse_json_once(raw: bytes) -> Any:
    """Parse JSON as `parse_json` does, but refuse an object with a repeated field: readers differ
    in which of the two values they take.
    """
    decoded = raw.decode()
    return json.loads(decoded, parse_constant=_refuse_constant, object_pairs_hook=_unique)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands twice")
    return found


def require_plain(value: Any, what: str) -> None:
    """Raise RequestError HF243 for a value that is nested too deeply, for NaN and infinity, and for
    text with lone surrogates.
    """
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > JSON_DEPTH_MAX:
            raise RequestError("HF243", f"{what} is nested deeper than {JSON_DEPTH_MAX} levels")
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                if not item.isascii() and not is_unicode(item):
                    raise RequestError("HF243", f"{what} holds a lone surrogate")
            elif isinstance(item, dict):
                below += item
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, _NUMBERS) and not -NUMBER_MAX <= item <= NUMBER_MAX:
                raise RequestError("HF243", f"{what} holds a number that JSON does not know")
        level = below


def plain_text(value: Any, what: str) -> str:
    """Return compact JSON. Raises RequestError HF243, or HF244 when the text is too large to
    store.
    """
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
    """Return the text with lone surrogates replaced, so that it can be encoded."""
    return text.encode(errors="replace").decode()


def json_text(value: Any) -> str:
    """Return the value as AWS writes it: compact JSON, without escapes for characters beyond
    ASCII.
    """
    return _compact(value)
