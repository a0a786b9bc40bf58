# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (each, workflow)
from tests.golden.shop import Order, anything, charge, is_valid


@workflow
def flow(order: Order) -> None:
    x = charge(order.id, 5)
    if order.coupon == "X" and x.status == "ok":
        pass
    receipts = each(order.lines, lambda line: charge(order.id, line.unit_cents))
    while order.lines:
        ok = is_valid(order)
        if not ok:
            break
    ok = is_valid(order)
    found = order.coupon
    if not found:
        y = anything()
    text = [x.id if order.lines else ""]
    charge(order.id, 1) if order.lines else None
