"""Operators on a value of the type `Any`: the compiled code reads the type from the JSON at run
time, and computes as Python would.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    Flat,
    QueryTree,
    Variable,
    failure,
    hold,
    invoke,
    is_kind,
    mapped,
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
    join,
)

_HELD: Final = "_any"
_WRONG: Final = failure("TypeError: the values have no order")
_NOT_ADDED: Final = failure("TypeError: only numbers, texts or lists are added")


def number_of(flag: QueryTree) -> QueryTree:
    """Return the number that Python uses for a bool: 1 or 0."""
    return Conditional(flag, Constant(1), Constant(0))


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
    query = hold(value.query, lambda held: Conditional(is_kind(held, kind), held, wrong), _HELD)
    return TypedQuery(query, _TYPES[kind], value.fails | {error})


_TYPES: Final[Mapping[str, Type]] = MappingProxyType(
    {"string": STR, "object": DictOf(UNKNOWN), "array": ListOf(UNKNOWN)}
)


#: The type of a number of which only the run knows whether it is an int.
NUMBER: Final = join(INT, FLOAT)


def as_numeric(value: TypedQuery) -> TypedQuery:
    """Return a value of unknown type as a number, or Python's TypeError; any other value
    unchanged.
    """
    if value.type != UNKNOWN:
        return value
    query = hold(value.query, lambda held: _number(held, is_strict=True), _HELD)
    return TypedQuery(query, NUMBER, value.fails | {"TypeError"})


def number_or_any(type_: Type) -> Type:
    """Return the type of the result of a computation with a value of unknown type."""
    return FLOAT if type_ == FLOAT else UNKNOWN


def numbers_of(items: TypedQuery) -> TypedQuery:
    """Return a list of values of unknown type as a list of numbers."""
    query = mapped(items.query, ("_item",), _number(Variable("_item"), is_strict=True))
    return TypedQuery(query, ListOf(NUMBER), items.fails | {"TypeError"})


def texts_of(items: TypedQuery) -> TypedQuery:
    """Return a list of values of unknown type as a list of texts."""
    query = mapped(items.query, ("_item",), _text(Variable("_item")))
    return TypedQuery(query, ListOf(STR), items.fails | {"TypeError"})


def added(left: TypedQuery, right: TypedQuery) -> tuple[QueryTree, Type] | None:
    """Lower `left + right` of a value of unknown type and one that is not a number: two numbers,
    two texts or two lists.
    """
    known = right.type if left.type == UNKNOWN else left.type
    if is_text(known):
        left, right = (_strict(one, _text, STR) for one in (left, right))
        return Binary("&", left.query, right.query), STR
    if isinstance(known, ListOf) and not known.is_tuple:
        left, right = (
            as_kind(one, "array", "TypeError") if one.type == UNKNOWN else one
            for one in (left, right)
        )
        return invoke("append", left.query, right.query), join(left.type, right.type)
    if known != UNKNOWN:
        return None

    def build(one: QueryTree, other: QueryTree) -> QueryTree:
        lists = Conditional(_are(one, other, "array"), invoke("append", one, other), _NOT_ADDED)
        texts = Conditional(_are(one, other, "string"), Binary("&", one, other), lists)
        total = Binary("+", _number(one, is_strict=True), _number(other, is_strict=True))
        return Conditional(_are_numbers(one, other), total, texts)

    return _of_two(left, right, build), UNKNOWN


def ordered(symbol: str, left: TypedQuery, right: TypedQuery) -> TypedQuery:
    """Lower an order of two values of unknown type: two numbers or two texts."""

    def build(one: QueryTree, other: QueryTree) -> QueryTree:
        texts = Conditional(_are(one, other, "string"), Binary(symbol, one, other), _WRONG)
        numbers = Binary(symbol, _number(one, is_strict=True), _number(other, is_strict=True))
        return Conditional(_are_numbers(one, other), numbers, texts)

    fails = left.fails | right.fails | {"TypeError"}
    return TypedQuery(_of_two(left, right, build), BOOL, fails)


def kind_of_key(value: QueryTree) -> QueryTree:
    """Return a text that two values share if they have an order: two numbers, or two texts."""

    def build(held: QueryTree) -> QueryTree:
        text = Conditional(is_kind(held, "string"), Constant("text"), Constant(NO_KEY))
        return Conditional(_is_number(held), Constant("number"), text)

    return hold(value, build, _HELD)


#: The kind of a value that has no order.
NO_KEY: Final = "other"


def key_of_any(value: QueryTree) -> QueryTree:
    """Return a value of unknown type in the form that JSONata orders: a bool is a number."""
    return hold(value, lambda held: _number(held, is_strict=False), _HELD)


def _of_two(
    left: TypedQuery, right: TypedQuery, build: Callable[[QueryTree, QueryTree], QueryTree]
) -> QueryTree:
    return hold(
        left.query,
        lambda one: hold(right.query, lambda other: build(one, other), "_right"),
        "_left",
    )


def _strict(value: TypedQuery, build: Callable[[QueryTree], QueryTree], type_: Type) -> TypedQuery:
    if value.type != UNKNOWN:
        return value
    return TypedQuery(hold(value.query, build, _HELD), type_, value.fails | {"TypeError"})


def _is_number(held: QueryTree) -> QueryTree:
    return Binary("or", is_kind(held, "number"), is_kind(held, "boolean"))


def _are(one: QueryTree, other: QueryTree, kind: str) -> QueryTree:
    return Binary("and", is_kind(one, kind), is_kind(other, kind))


def _are_numbers(one: QueryTree, other: QueryTree) -> QueryTree:
    return Binary("and", _is_number(one), _is_number(other))


def in_any(item: TypedQuery, of: TypedQuery) -> TypedQuery:
    """Lower `text in value`: a part of a text, a key of a dict, or an item of a list."""

    def build(wanted: QueryTree, held: QueryTree) -> QueryTree:
        key = invoke("exists", invoke("lookup", held, wanted))
        part = invoke("contains", held, wanted)
        return _by_kind(held, Binary("in", wanted, held), key, part)

    return TypedQuery(_of_two(item, of, build), BOOL, item.fails | of.fails | {"TypeError"})


def size_of_any(value: TypedQuery) -> TypedQuery:
    """Return `len(value)`."""

    def build(held: QueryTree) -> QueryTree:
        size = invoke("count", held)
        keys = invoke("count", invoke("keys", held))
        return _by_kind(held, size, keys, invoke("length", held))

    return TypedQuery(hold(value.query, build, _HELD), INT, value.fails | {"TypeError"})


def items_of_any(value: TypedQuery) -> TypedQuery:
    """Return what an iteration over the value gives: items, keys or characters."""

    def build(held: QueryTree) -> QueryTree:
        keys = Flat(invoke("keys", held))
        return _by_kind(held, held, keys, invoke("split", held, Constant("")))

    query = hold(value.query, build, _HELD)
    return TypedQuery(query, ListOf(UNKNOWN), value.fails | {"TypeError"})


def _by_kind(held: QueryTree, array: QueryTree, dict_: QueryTree, text: QueryTree) -> QueryTree:
    wrong = failure("TypeError: the value is no list, dict or text")
    others = Conditional(is_kind(held, "string"), text, wrong)
    others = Conditional(is_kind(held, "object"), dict_, others)
    return Conditional(is_kind(held, "array"), array, others)


def _text(held: QueryTree) -> QueryTree:
    return Conditional(is_kind(held, "string"), held, _WRONG)


def _number(held: QueryTree, *, is_strict: bool) -> QueryTree:
    other = Conditional(is_kind(held, "number"), held, _WRONG) if is_strict else held
    return Conditional(is_kind(held, "boolean"), number_of(held), other)


def truth_of_any(query: QueryTree) -> QueryTree:
    """Return the truth of any JSON value, by Python's rule. JSONata's rule differs for lists: there
    `[0]` is false.
    """

    def build(held: QueryTree) -> QueryTree:
        size = Binary(">", invoke("count", held), Constant(0))
        return Conditional(is_kind(held, "array"), size, invoke("boolean", held))

    return hold(query, build, _HELD)
