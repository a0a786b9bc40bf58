"""Lists that are made of the items of another list, also where an item may be a list.

JSONata's `$map` and `$filter` return a single result without its list, and flatten a result that is
a list. Where that could happen, `$reduce` puts the results together one by one.

In all functions here `names` are the variables of an item and of its index.
"""

from __future__ import annotations

from typing import Final

from holdfast.compiler.expressions.query import (
    EMPTY_LIST,
    Conditional,
    FunctionLiteral,
    QueryTree,
    Variable,
    filtered,
    invoke,
    items_of,
)
from holdfast.compiler.types.types import Type, is_list, may_be_list

_DONE: Final = Variable("_done")


def where(
    items: QueryTree, names: tuple[Variable, ...], test: QueryTree, element: Type
) -> QueryTree:
    """Return the items that pass the test."""
    if not may_be_list(element):
        return filtered(items, tuple(name.name for name in names), test)
    return gathered(items, names, items_of(names[0], is_list=is_list(element)), test)


def gathered(
    items: QueryTree,
    names: tuple[Variable, ...],
    some: QueryTree,
    test: QueryTree | None = None,
) -> QueryTree:
    """Return one list: the lists `some` of all items, or of those that pass the test."""
    longer: QueryTree = invoke("append", _DONE, some)
    if test is not None:
        longer = Conditional(test, longer, _DONE)
    step = FunctionLiteral((_DONE.name, *(name.name for name in names)), longer)
    return invoke("reduce", items, step, EMPTY_LIST)
