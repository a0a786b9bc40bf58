# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, anything, charge, is_valid


@workflow
def flow(order: Order) -> None:
    if order.coupon == "X" and charge(order.id, 5).status == "ok":
        pass
    lines = sorted(order.lines, key=lambda line: charge(order.id, line.unit_cents).status)
    while order.lines and is_valid(order):
        pass
    ok = is_valid(order) and is_valid(order)
    found = order.coupon or anything()
    text = [charge(order.id, 1).id if order.lines else ""]
    charge(order.id, 1) if order.lines else order.id
