# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import CardDeclined, Order, charge, notify


@workflow
def flow(order: Order) -> str:
    if order.lines:
        first = order.lines[0].sku
    try:
        payment = charge(order.id, 5)
    except CardDeclined:
        pass
    for line in order.lines:
        last = line.sku
    while order.coupon is None:
        notify("a", later)
        later = first
    return first + payment.id + last + line.sku
