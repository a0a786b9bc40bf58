"""Values as text, in the form in which Java writes them: Step Functions runs on Java.

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
    """Return the text of Java's `String.valueOf`: `{Arg1=1, Arg2=[]}`, `[1, 2]`, `null`."""
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
    """Return compact JSON, with numbers as the Java library Jackson writes them."""
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
    """Return the value as text for an error message. A value that is nested too deeply to be
    written gets a short text.
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
    """Return a number as java.lang.Double.toString writes it: 1e10 gives 1.0E10, 1e-5 gives
    1.0E-5.
    """
    if not math.isfinite(value):
        return repr(value).replace("inf", "Infinity").replace("nan", "NaN")
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_END:
        return repr(value)
    digits = repr(abs(value)).partition("e")[0].replace(".", "").strip("0")
    exponent = int(f"{value:.17e}".partition("e")[2])
    return f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"
