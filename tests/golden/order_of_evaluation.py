# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge, notify


@workflow
def flow(order: Order) -> str:
    notify(order.lines[0].sku, charge(order.id, 5).id)
    return order.lines[0].sku + charge(order.id, 5).id
