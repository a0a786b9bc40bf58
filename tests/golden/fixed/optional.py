# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, Payment


@workflow
def flow(order: Order, payment: Payment | None) -> str:
    if payment is not None:
        if order.coupon is not None:
            if order.coupon.startswith("VIP"):
                return payment.id
            return payment.id + order.coupon.upper()
    return ""
