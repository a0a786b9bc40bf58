"""Operators on a value of the type `Any`: the compiled code reads the type from the JSON at run
time, and computes as Python would.
"""

from __future__ import annotations

import ast
from typing import Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    FunctionCall,
    QueryTree,
    failure,
    hold,
)
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    STR,
    UNKNOWN,
    Type,
    is_numeric,
    is_text,
)

_HELD: Final = "_any"


def number_of(flag: QueryTree) -> QueryTree:
    """Return the number that Python uses for a bool: 1 or 0."""
    return Conditional(flag, Constant(1), Constant(0))


def _is(value: QueryTree, kind: str) -> QueryTree:
    return Binary("=", FunctionCall("type", (value,)), Constant(kind))


def beside(operator: ast.cmpop, value: TypedQuery, other: Type) -> TypedQuery:
    """Return `value`, if its type is unknown, in the form that can be compared with the type
    `other`. A bool counts as a number. For an order, a value of another type fails with Python's
    TypeError.
    """
    if value.type != UNKNOWN:
        return value
    is_equality = isinstance(operator, ast.Eq | ast.NotEq)
    if is_numeric(other) or other == BOOL:
        query = hold(value.query, lambda held: _number(held, is_strict=not is_equality), _HELD)
        fails = value.fails if is_equality else value.fails | {"TypeError"}
        return TypedQuery(query, FLOAT, fails)
    if is_text(other) and not is_equality:
        query = hold(value.query, _text, _HELD)
        return TypedQuery(query, STR, value.fails | {"TypeError"})
    return value


_WRONG: Final = failure("TypeError: the values have no order")


def _text(held: QueryTree) -> QueryTree:
    return Conditional(_is(held, "string"), held, _WRONG)


def _number(held: QueryTree, *, is_strict: bool) -> QueryTree:
    other = Conditional(_is(held, "number"), held, _WRONG) if is_strict else held
    return Conditional(_is(held, "boolean"), number_of(held), other)


def truth_of_any(query: QueryTree) -> QueryTree:
    """Return the truth of any JSON value, by Python's rule. JSONata's rule differs for lists: there
    `[0]` is false.
    """

    def build(held: QueryTree) -> QueryTree:
        size = Binary(">", FunctionCall("count", (held,)), Constant(0))
        return Conditional(_is(held, "array"), size, FunctionCall("boolean", (held,)))

    return hold(query, build, _HELD)
