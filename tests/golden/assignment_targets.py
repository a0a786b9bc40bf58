# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge, notify


@workflow
def flow(order: Order, d: dict[str, int]) -> None:
    order.coupon = "FREE"
    d["x"] = 1
    a = b = 1
    a, b = charge(order.id, 5)
    a, *b = order.lines
    count: str = 5
    notify(a, b)
