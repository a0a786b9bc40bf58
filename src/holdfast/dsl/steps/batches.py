"""`each(…, batch=n)`: a list cut into lists of up to n items, in JSONata that runs anywhere."""

from __future__ import annotations

from holdfast.dsl.context import Expression, fails_of
from holdfast.dsl.expressions.query import (
    EMPTY_LIST,
    ArrayOf,
    Binary,
    Call,
    Conditional,
    Constant,
    Flat,
    Function,
    Index,
    Nested,
    Query,
    RangeOf,
    Variable,
    hold,
    items_of,
)
from holdfast.dsl.types.types import REFUSED, ListOf, Type, element_of, is_list, may_be_list

_NUMBER = Variable("_number")
_PLACE = Variable("_place")


def in_batches(items: Expression, size: Expression) -> Expression:
    element = element_of(items.type) or REFUSED
    query = hold(
        items.query,
        lambda every: hold(size.query, lambda most: _cut(every, most, element), "_size"),
        "_every",
    )
    return Expression(query, ListOf(ListOf(element)), fails_of(items, size))


def _cut(every: Query, size: Query, element: Type) -> Query:
    """`$map` gives a single result without its list, so one batch is not made by it."""
    count = Call("count", (every,))
    batch = Function((_NUMBER.name,), _batch(every, size, element))
    last = Call("floor", (Binary("/", Binary("-", count, Constant(1)), size),))
    several = Flat(Call("map", (RangeOf(Constant(0), last), batch)))
    at_most_one = Conditional(
        Binary("=", count, Constant(0)), EMPTY_LIST, ArrayOf((Nested(every),))
    )
    return Conditional(Binary("<=", count, size), at_most_one, several)


def _batch(every: Query, size: Query, element: Type) -> Query:
    """The items of batch `_number`, read by their places: the time is that of one pass."""
    first = Binary("*", _NUMBER, size)
    end = Call("min", (ArrayOf((Binary("+", first, size), Call("count", (every,)))),))
    places = RangeOf(first, Binary("-", end, Constant(1)))
    several = Flat(Call("map", (places, Function((_PLACE.name,), Index(every, _PLACE)))))
    if not may_be_list(element):
        return several
    alone = items_of(Index(every, first), is_list=is_list(element))
    return Conditional(Binary("=", Binary("-", end, first), Constant(1)), alone, several)
