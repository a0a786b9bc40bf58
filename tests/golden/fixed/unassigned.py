# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import CardDeclined, Order, charge, notify


@workflow
def flow(order: Order) -> str:
    first = None
    payment = None
    last = None
    later = None
    line = None
    if order.lines:
        first = order.lines[0].sku
    try:
        payment = charge(order.id, 5)
    except CardDeclined:
        pass
    for line in order.lines:
        last = line.sku
    while order.coupon is None:
        if later is not None:
            notify("a", later)
        later = first
    return f"{first} {last}"
