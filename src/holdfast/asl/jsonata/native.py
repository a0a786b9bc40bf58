"""The form of built-in functions for closures: arguments in, value out, or `Declined`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.asl.jsonata.runtime import Declined
from holdfast.asl.jsonata.values import UNDEFINED


@dataclass(frozen=True, slots=True)
class Native:
    """A built-in function: the numbers of arguments it takes, which argument is a function, which
    may be a regex.
    """

    call: Callable[..., Any]
    arities: tuple[int, ...]
    function_at: int | None = None
    pattern_at: int | None = None


def require(*conditions: bool) -> None:
    if not all(conditions):
        raise Declined


def as_array(value: Any) -> list[Any] | None:
    """An array argument: anything else counts as an array of one; None when undefined."""
    if type(value) is list:
        return value
    return None if value is UNDEFINED else [value]
