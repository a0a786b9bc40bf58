"""`each(…, batch=n)`: a list is cut into lists of up to n items, in JSONata that AWS can run,
too.
"""

from __future__ import annotations

from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.expressions.query import (
    EMPTY_LIST,
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    ItemOf,
    Nested,
    QueryTree,
    RangeOf,
    Variable,
    hold,
    invoke,
    items_of,
    mapped,
)
from holdfast.compiler.types.types import REFUSED, ListOf, Type, element_of, is_list, may_be_list

_NUMBER = Variable("_number")
_PLACE = Variable("_place")


def in_batches(items: TypedQuery, size: TypedQuery) -> TypedQuery:
    element = element_of(items.type) or REFUSED
    query = hold(
        items.query,
        lambda every: hold(size.query, lambda most: _cut(every, most, element), "_size"),
        "_every",
    )
    return TypedQuery(query, ListOf(ListOf(element)), fails_of(items, size))


def _cut(every: QueryTree, size: QueryTree, element: Type) -> QueryTree:
    """Return the list of batches. `$map` returns a single result without its list, so the case of
    one batch is separate.
    """
    count = invoke("count", every)
    last = invoke("floor", Binary("/", Binary("-", count, Constant(1)), size))
    numbers = RangeOf(Constant(0), last)
    several = mapped(numbers, (_NUMBER.name,), _batch(every, size, element))
    at_most_one = Conditional(
        Binary("=", count, Constant(0)), EMPTY_LIST, ArrayOf((Nested(every),))
    )
    return Conditional(Binary("<=", count, size), at_most_one, several)


def _batch(every: QueryTree, size: QueryTree, element: Type) -> QueryTree:
    """Return the items of batch `_number`. They are read by their positions, so all batches
    together take the time of one pass over the list.
    """
    first = Binary("*", _NUMBER, size)
    end = invoke("min", ArrayOf((Binary("+", first, size), invoke("count", every))))
    places = RangeOf(first, Binary("-", end, Constant(1)))
    several = mapped(places, (_PLACE.name,), ItemOf(every, _PLACE))
    if not may_be_list(element):
        return several
    alone = items_of(ItemOf(every, first), is_list=is_list(element))
    return Conditional(Binary("=", Binary("-", end, first), Constant(1)), alone, several)
