"""Values as text, the way Java writes them: Step Functions runs on it, and it shows.

`{"a": 1.0}` is `{a=1.0}` in States.Format and `{"a":1.0}` in States.JsonToString.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Final

from holdfast.asl.jsonata.values import StrictJson

_PLAIN_MIN: Final = 1e-3
_PLAIN_END: Final = 1e7


def java_text(value: StrictJson) -> str:
    """The text that Java's `String.valueOf` gives: `{Arg1=1, Arg2=[]}`, `[1, 2]`, `null`."""
    match value:
        case str():
            return value
        case dict():
            return "{" + ", ".join(f"{key}={java_text(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(java_text, value)) + "]"
        case _:
            return _scalar(value)


def json_text(value: StrictJson) -> str:
    """Compact JSON; its numbers are written as Jackson writes them."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case dict():
            fields = (
                f"{json.dumps(key, ensure_ascii=False)}:{json_text(item)}"
                for key, item in value.items()
            )
            return "{" + ",".join(fields) + "}"
        case list():
            return "[" + ",".join(map(json_text, value)) + "]"
        case _:
            return _scalar(value)


def shown(value: StrictJson, write: Callable[[StrictJson], str] = json_text) -> str:
    """Return the value as text for an error message, also when the value is nested too deeply to
    write.
    """
    try:
        return write(value)
    except RecursionError:
        return "…"


def _scalar(value: float | bool | None) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _double(value)
        case _:
            return str(value)


def _double(value: float) -> str:
    """1e10 -> 1.0E10, 0.5 -> 0.5, 1e-5 -> 1.0E-5 (java.lang.Double.toString)."""
    if not math.isfinite(value):
        return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_END:
        return repr(value)
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    exponent = int(f"{value:.17e}".partition("e")[2])
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"
