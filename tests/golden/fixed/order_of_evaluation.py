# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge, notify


@workflow
def flow(order: Order) -> str:
    x = order.lines[0].sku
    notify(x, charge(order.id, 5).id)
    return x + charge(order.id, 5).id
