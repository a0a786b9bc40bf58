"""The form of built-in functions for closures: arguments in, value out, or `Declined`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.asl.jsonata.runtime import Declined
from holdfast.asl.jsonata.values import UNDEFINED
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Native:
    """A built-in function: the possible numbers of its arguments, which argument is a function, and
    which may be a regex.
    """

    call: Callable[..., Any]
    arities: tuple[int, ...]
    function_at: int | None = None
    pattern_at: int | None = None


def require(*conditions: bool) -> None:
    if not all(conditions):
        raise Declined


def as_array(value: Any) -> list[Any] | None:
    """Return an array argument: any other value counts as an array with that one item; undefined
    gives None.
    """
    if type(value) is list:
        return value
    return None if value is UNDEFINED else [value]
