"""`sum()` of floats, added in Python's order.

Python adds from left to right. From version 3.12 it also adds up the rounding errors (the method of
Neumaier) and adds them at the end, so the last digit may be another one. The query follows the
Python that compiles the workflow; a running execution keeps the sum of its definition.
"""

from __future__ import annotations

import sys
from typing import Final

from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Block,
    Conditional,
    Constant,
    FunctionLiteral,
    ItemOf,
    QueryTree,
    Variable,
    hold,
    invoke,
)

IS_COMPENSATED: Final = sys.version_info >= (3, 12)
_DONE: Final = Variable("_done")
_ITEM: Final = Variable("_item")
_PARAMETERS: Final = ("_done", "_item")


def float_sum(items: QueryTree, start: QueryTree) -> QueryTree:
    return compensated_sum(items, start) if IS_COMPENSATED else plain_sum(items, start)


def plain_sum(items: QueryTree, start: QueryTree) -> QueryTree:
    longer = FunctionLiteral(_PARAMETERS, Binary("+", _DONE, _ITEM))
    return invoke("reduce", items, longer, start)


def compensated_sum(items: QueryTree, start: QueryTree) -> QueryTree:
    """Return the sum with the sum of its rounding errors. The accumulator is `[sum, errors]`."""
    total = Variable("_total")
    before, errors = ItemOf(_DONE, Constant(0)), ItemOf(_DONE, Constant(1))
    is_larger = Binary(">=", invoke("abs", before), invoke("abs", _ITEM))
    error = Conditional(
        is_larger,
        Binary("+", Binary("-", before, total), _ITEM),
        Binary("+", Binary("-", _ITEM, total), before),
    )
    body = Block("_total", Binary("+", before, _ITEM), ArrayOf((total, Binary("+", errors, error))))
    pair = invoke(
        "reduce", items, FunctionLiteral(_PARAMETERS, body), ArrayOf((start, Constant(0)))
    )
    return hold(
        pair,
        lambda held: Binary("+", ItemOf(held, Constant(0)), ItemOf(held, Constant(1))),
        "_sum",
    )
