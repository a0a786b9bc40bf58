# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, Outcome, anything


@workflow
def flow(order: Order, n: int) -> None:
    c = Outcome(order_id=order.id, status="lost")
    d = Outcome(order_id=n, status=order.id)
    e = Outcome(order_id=order.id)
    f = Outcome(order.id, status="shipped")
    g = Outcome(order_id=anything(), status="shipped")
