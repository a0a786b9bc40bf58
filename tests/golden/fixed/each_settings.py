# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (pure, each, task, workflow)
from tests.golden.shop import Line, Order, Payment, charge


@task
def pack(line: Line) -> None: ...


@workflow
def flow(order: Order, n: int, share: float, most: int | None) -> list[Payment]:
    each(order.lines, lambda line: line.sku, concurrency=1)
    each(order.lines, lambda line: line.sku, concurrency=round(share))
    each(order.lines, lambda line: line.sku, tolerate=1)
    if most is not None:
        each(order.lines, lambda line: line.sku, tolerate=most)
    each(order.lines, lambda lines: [line.sku for line in lines], batch=1)
    each(order.lines, lambda line: line.sku, concurrency=2, tolerate=1)
    each(order.lines, lambda item: pack(item), at_least=1)
    each(order.lines, lambda item: pack(item), at_least=round(share))
    each(order.lines, lambda line: line.sku, return_exceptions=True)
    each(order.lines, lambda line: line.sku, return_exceptions=True)
    each(order.lines, lambda line: line.sku, cancel_others=False)
    each(order.lines, lambda item: pack(item))
    each(range(n), lambda number: number)
    for payment in each(["a", "b"], lambda sku: charge(sku, 1), tolerate=1):
        if payment is not None:
            charge(payment.id, n)
    outcomes = each(["a", "b"], lambda sku: charge(sku, 1), return_exceptions=True)
    if n > 1:
        return [one for one in outcomes if not isinstance(one, Exception)]
    outcomes = each(["a", "b"], lambda sku: charge(sku, 1), return_exceptions=True)
    return [one for one in outcomes if not isinstance(one, Exception)]
