# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order) -> str:
    while True:
        notify("a", "b")
        if order.lines:
            break
    return "x"


@workflow
def unassigned(order: Order) -> str:
    found = None
    missing = None
    code = None
    for line in order.lines:
        if line.qty > 5:
            found = line.sku
            break
    else:
        missing = True
    while order.coupon is None:
        break
    else:
        code = order.coupon
    if missing:
        return f"{code}"
    return f"{found}"
