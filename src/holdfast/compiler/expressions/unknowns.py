"""Operators on a value of the type `Any`: the compiled code reads the type from the JSON at run
time, and computes as Python would.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    Flat,
    FunctionCall,
    QueryTree,
    failure,
    hold,
)
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    INT,
    STR,
    UNKNOWN,
    DictOf,
    ListOf,
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


def as_kind(value: TypedQuery, kind: str, error: str) -> TypedQuery:
    """Return a value of unknown type as one of the kind of JSON, or Python's error."""
    wrong = failure(f"{error}: the value is no {kind}")
    query = hold(value.query, lambda held: Conditional(_is(held, kind), held, wrong), _HELD)
    return TypedQuery(query, _TYPES[kind], value.fails | {error})


_TYPES: Final[Mapping[str, Type]] = MappingProxyType(
    {"string": STR, "object": DictOf(UNKNOWN), "array": ListOf(UNKNOWN)}
)


def size_of_any(value: TypedQuery) -> TypedQuery:
    """Return `len(value)`."""

    def build(held: QueryTree) -> QueryTree:
        size = FunctionCall("count", (held,))
        keys = FunctionCall("count", (FunctionCall("keys", (held,)),))
        return _by_kind(held, size, keys, FunctionCall("length", (held,)))

    return TypedQuery(hold(value.query, build, _HELD), INT, value.fails | {"TypeError"})


def items_of_any(value: TypedQuery) -> TypedQuery:
    """Return what an iteration over the value gives: items, keys or characters."""

    def build(held: QueryTree) -> QueryTree:
        keys = Flat(FunctionCall("keys", (held,)))
        return _by_kind(held, held, keys, FunctionCall("split", (held, Constant(""))))

    query = hold(value.query, build, _HELD)
    return TypedQuery(query, ListOf(UNKNOWN), value.fails | {"TypeError"})


def _by_kind(held: QueryTree, array: QueryTree, dict_: QueryTree, text: QueryTree) -> QueryTree:
    wrong = failure("TypeError: the value is no list, dict or text")
    others = Conditional(_is(held, "object"), dict_, Conditional(_is(held, "string"), text, wrong))
    return Conditional(_is(held, "array"), array, others)


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
