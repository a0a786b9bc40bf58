# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (days, each, first, parallel, sleep, workflow)
from tests.golden.shop import Order, Payment, charge, notify


@workflow
def flow(order: Order, n: int, ratio: float) -> str:
    first(lambda: charge("a", 1), lambda: charge("b", 1))
    first(lambda: 1, lambda: 2)
    first(lambda: charge(order.id, 5), lambda: 1)
    parallel(lambda: charge("a", 1), lambda: notify("a", "b"), at_least=1)
    parallel(lambda: 1, lambda: 2, at_least=round(ratio))
    paid, told = parallel(lambda: charge("a", 1), lambda: notify("a", "b"), at_least=1)
    if paid is not None:
        notify(paid.id, "paid")
    won = first(lambda: charge("a", 1), lambda: sleep(days(1)))
    if won is not None:
        notify(won.id, "won")
    other = first(lambda: charge("a", 1), lambda: "late")
    if isinstance(other, Payment):
        notify(other.id, "other")
    found = each(order.lines, lambda line: first(lambda: line.sku, lambda: order.id))
    return found[0]
