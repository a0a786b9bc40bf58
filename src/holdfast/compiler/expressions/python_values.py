"""Errors that Python itself would raise. A `@pure` function does not help: it would fail, too."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from holdfast.compiler.context import Unit
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    INT,
    DictOf,
    ListOf,
    TupleOf,
    Type,
    is_numeric,
    is_text,
    may_be_none,
)

_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "//": operator.floordiv,
        "%": operator.mod,
        "**": operator.pow,
        "|": operator.or_,
    }
)


def _sample(type_: Type) -> Any:
    """Return a small value of the type; None where none is known."""
    plain: dict[Type, Any] = {INT: 1, FLOAT: 1.0, BOOL: True}
    if type_ in plain:
        return plain[type_]
    if is_text(type_):
        return "%s"
    match type_:
        case ListOf(is_tuple=is_tuple):
            return () if is_tuple else []
        case TupleOf():
            return ()
        case DictOf():
            return {}
    return None


def operand_help(unit: Unit, node: ast.AST, symbol: str, left: Type, right: Type) -> str | None:
    """Return the help for operands that Python cannot combine either."""
    match node:
        case ast.BinOp(left=one, right=other) | ast.AugAssign(target=one, value=other):
            sides = ((unit.text(one), left), (unit.text(other), right))
        case _:
            return None
    for text, type_ in sides:
        if may_be_none(type_):
            return f"if {text} is not None: …"
    return _conversion(symbol, *sides)


def _conversion(symbol: str, left: tuple[str, Type], right: tuple[str, Type]) -> str | None:
    """Return the conversion that makes the operands fit; None where Python can combine them.

    `left` and `right` are source text and type of each operand.
    """
    samples = _sample(left[1]), _sample(right[1])
    if None in samples or symbol not in _OPERATORS:
        return None
    try:
        _OPERATORS[symbol](*samples)
    except TypeError:
        if symbol == "|":
            return f"{{**{left[0]}, key: value}}"
        return f"{_fitting(symbol, left, right[1])} {symbol} {_fitting(symbol, right, left[1])}"
    return None


def _fitting(symbol: str, side: tuple[str, Type], other: Type) -> str:
    text, type_ = side
    if symbol == "+" and is_text(other) and is_numeric(type_):
        return f"str({text})"
    if is_text(type_) and symbol != "+":
        return f"int({text})"
    is_tuple = isinstance(type_, TupleOf) or (isinstance(type_, ListOf) and type_.is_tuple)
    if is_tuple and symbol == "+":
        return f"list({text})"
    return f"round({text})" if type_ == FLOAT else text


def has_attribute(type_: Type, name: str) -> bool:
    """Return True when values of the type have this attribute in Python, or when that is
    unknown.
    """
    sample = _sample(type_)
    return sample is None or hasattr(sample, name)
