"""Values of unknown type: what the run shows of the JSON of an `Any`, as Python would use it."""

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
    """The number that a bool is in Python."""
    return Conditional(flag, Constant(1), Constant(0))


def _is(value: QueryTree, kind: str) -> QueryTree:
    return Binary("=", FunctionCall("type", (value,)), Constant(kind))


def beside(operator: ast.cmpop, value: TypedQuery, other: Type) -> TypedQuery:
    """A value of unknown type where it is compared with a value of the type `other`: a bool counts
    as a number, and what has no order fails with Python's error.
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
    """The truth of any JSON value, as Python has it: JSONata's own differs for lists."""

    def build(held: QueryTree) -> QueryTree:
        size = Binary(">", FunctionCall("count", (held,)), Constant(0))
        return Conditional(_is(held, "array"), size, FunctionCall("boolean", (held,)))

    return hold(query, build, _HELD)
