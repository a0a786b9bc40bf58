"""Compiles the removal of one item from a list or dict, with Python's error when the item is
missing.
"""

from __future__ import annotations

from holdfast.compiler.expressions.gathering import where
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Block,
    Conditional,
    Constant,
    FunctionLiteral,
    QueryTree,
    Variable,
    failure,
    hold,
    invoke,
)
from holdfast.compiler.types.types import Type

_PLACE = Variable("_place")


def without_place(items: QueryTree, index: QueryTree, element: Type, text: str) -> QueryTree:
    """Return the list without the item at `index`. A negative index counts from the end."""
    at, size = Variable("_at"), invoke("count", items)
    is_from_end = Binary("<", index, Constant(0))
    wanted: QueryTree = Conditional(is_from_end, Binary("+", index, size), index)
    if isinstance(index, Constant) and isinstance(index.value, int):
        wanted = Binary("-", size, Constant(-index.value)) if index.value < 0 else index
    is_inside = Binary("and", Binary(">=", at, Constant(0)), Binary("<", at, size))
    rest = Conditional(is_inside, _without(items, at, element), failure(f"IndexError: {text}"))
    return Block(at.name, wanted, rest)


def without_first(items: QueryTree, place: QueryTree, element: Type) -> QueryTree:
    """Return the list without the item at `place`, which must be inside of the list."""
    return hold(place, lambda at: _without(items, at, element), "_at")


def _without(items: QueryTree, at: QueryTree, element: Type) -> QueryTree:
    return where(items, (Variable("_value"), _PLACE), Binary("!=", _PLACE, at), element)


def without_key(mapping: QueryTree, key: QueryTree) -> QueryTree:
    """Return the dict without the key; the same dict if it does not have the key."""
    is_kept = Binary("!=", Variable("_key"), key)
    rest = invoke("sift", mapping, FunctionLiteral(("_value", "_key"), is_kept))
    return invoke("merge", ArrayOf((rest,)))


def without_known_key(mapping: QueryTree, key: QueryTree, text: str) -> QueryTree:
    """Return the dict without the key. It fails with Python's error if the dict does not have the
    key.
    """
    return hold(
        key,
        lambda held: Conditional(
            invoke("exists", invoke("lookup", mapping, held)),
            without_key(mapping, held),
            failure(f"KeyError: {text}"),
        ),
        "_wanted",
    )
