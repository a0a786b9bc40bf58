"""Whole floats as ints, as an expression of a state machine writes them."""

from __future__ import annotations

from typing import Any


def with_whole_numbers(value: Any) -> Any:
    """Return the JSON with ints in place of whole floats: an expression of a state machine gives 2
    for 2.0.
    """
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {str(key): with_whole_numbers(inner) for key, inner in value.items()}
        case list() | tuple():
            return [with_whole_numbers(inner) for inner in value]
        case _:
            return value
