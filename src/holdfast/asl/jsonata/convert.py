"""Converts values for jsonata-python, in which undefined is None and null is NULL_VALUE, and back.

Only what must change is copied: an array or object that contains no null stays the same object.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from jsonata import JException, Jsonata, Parser, Utils

from holdfast.asl.jsonata import values
from holdfast.asl.jsonata.values import UNDEFINED, StrictJson, Undefined, budget_error, tidy_number

NULL: Final = Utils.NULL_VALUE
_LEFT_OUT: Final = object()


def imported(value: StrictJson) -> Any:
    """Return a JSON value in the form that the library uses."""
    return _Copy(lambda leaf: NULL if leaf is None else leaf).of(value)


def exported(value: Any) -> StrictJson | Undefined:
    """Return the library's result as JSON. A function becomes undefined, because it has no JSON."""
    result = _Copy(_exported_leaf).of(value)
    if (result is None and value is not NULL) or result is _LEFT_OUT:
        return UNDEFINED
    return tidy_number(result) if isinstance(result, float) else result


def exported_for_text(value: Any) -> Any:
    """Convert like `exported`, but for $string, which writes a function as an empty text."""
    return _Copy(lambda leaf: "" if is_function(leaf) else _exported_leaf(leaf)).of(value)


def is_function(value: Any) -> bool:
    return isinstance(value, Jsonata.JFunctionCallable | Parser.Symbol) or hasattr(
        value, "finditer"
    )


def _exported_leaf(leaf: Any) -> Any:
    if leaf is NULL:
        return None
    if isinstance(leaf, float) and not math.isfinite(leaf):
        raise JException("D1001", -1, str(leaf))
    if leaf is None or isinstance(leaf, str | int | float):
        return leaf
    return _LEFT_OUT


class _Copy:
    """Copies a value where it must change, and counts its parts: a value that is small in memory
    may contain the same list very many times.
    """

    def __init__(self, leaf: Callable[[Any], Any]) -> None:
        self._leaf = leaf
        self._left = values.VALUE_NODES_MAX

    def of(self, value: Any, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0:
            raise budget_error(f"made a value of more than {values.VALUE_NODES_MAX:,} parts")
        if depth > values.VALUE_DEPTH_MAX:
            raise budget_error(f"made a value deeper than {values.VALUE_DEPTH_MAX}")
        if isinstance(value, dict):
            return self._of_object(value, depth + 1)
        if isinstance(value, list):
            return self._of_array(value, depth + 1)
        return self._leaf(value)

    def _of_object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        copy = {key: self.of(item, depth) for key, item in value.items()}
        if all(copy[key] is item for key, item in value.items()):
            return value
        return {key: item for key, item in copy.items() if item is not _LEFT_OUT}

    def _of_array(self, value: list[Any], depth: int) -> list[Any]:
        copy = [self.of(item, depth) for item in value]
        if type(value) is list and all(map(_is, copy, value)):
            return value
        return [None if item is _LEFT_OUT else item for item in copy]


def _is(left: object, right: object) -> bool:
    return left is right
