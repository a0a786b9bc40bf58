# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge, notify


@workflow
def flow(order: Order, d: dict[str, int]) -> None:
    a, flow.coupon = 1, "FREE"
    a, b = 1, 2, 3
    a, b = charge(order.id, 5)
    a, *b = order
    count: str = 5
    notify(a, b)
