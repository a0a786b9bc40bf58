# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (days, first, parallel, sleep, workflow)
from tests.golden.shop import Order, charge, notify


@workflow
def flow(order: Order, n: int, ratio: float) -> str:
    first()
    first(lambda: 1, 2)
    first(lambda n: n, lambda: 1)
    first(charge, lambda: 1)
    first(lambda: 1, lambda: 2, at_least=1)
    parallel(at_least=1)
    parallel(lambda: 1, lambda: 2, at_least=3)
    parallel(lambda: 1, lambda: 2, at_least=0)
    parallel(lambda: 1, lambda: 2, at_least="1")
    parallel(lambda: 1, lambda: 2, at_least=ratio)
    parallel(lambda: 1, lambda: 2, at_least=None)
    paid, told = parallel(lambda: charge("a", 1), lambda: notify("a", "b"), at_least=1)
    notify(paid.id, "paid")
    won = first(lambda: charge("a", 1), lambda: sleep(days(1)))
    notify(won.id, "won")
    other = first(lambda: charge("a", 1), lambda: "late")
    notify(other.id, "other")
    return sorted(order.lines, key=lambda line: first(lambda: line.sku, lambda: order.id))[0].sku
