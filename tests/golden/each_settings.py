# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (each, workflow)
from tests.golden.shop import Order, Payment, charge


@workflow
def flow(order: Order, n: int, share: float, most: int | None) -> list[Payment]:
    each(order.lines, lambda line: line.sku, concurrency=-1)
    each(order.lines, lambda line: line.sku, concurrency=share)
    each(order.lines, lambda line: line.sku, tolerate=-1)
    each(order.lines, lambda line: line.sku, tolerate=True)
    each(order.lines, lambda line: line.sku, tolerate=most)
    each(order.lines, lambda line: line.sku, batch=0)
    each(order.lines, lambda line: line.sku, batch=2)
    each(order.lines, lambda line: line.sku, size=2)
    each(order.lines, lambda line: line.sku, at_least=0)
    each(order.lines, lambda line: line.sku, at_least=share)
    each(order.lines, lambda line: line.sku, return_exceptions=n > 1)
    each(order.lines, lambda line: line.sku, return_exceptions=True, cancel_others=False)
    each(order.lines, lambda line: line.sku, cancel_others=n > 1)
    each(order.lines)
    each(order.lines, lambda: 1)
    each(order.lines, lambda line, more: 1)
    each(n, lambda number: number)
    for payment in each(["a", "b"], lambda sku: charge(sku, 1), tolerate=1):
        charge(payment.id, n)
    outcomes = each(["a", "b"], lambda sku: charge(sku, 1), return_exceptions=True)
    if n > 1:
        return outcomes
    return each(["a", "b"], lambda sku: charge(sku, 1), return_exceptions=True)
