# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import datetime

from holdfast import (compensating, workflow)
from tests.golden.shop import Colour, Line, Order, Payment, charge, notify, other, refund, is_valid


@workflow
def flow(order: Order, n: int, maybe: str | None, at: datetime, payment: Payment, names: list[str]) -> None:
    charge(n, 5)
    charge(order.id, order.id)
    charge(order.id, cents=names)
    notify(None, "x")
    notify(to=order.id, text=payment)
    is_valid(payment)
    is_valid({"id": order.id})
    other(n)
    notify(names, at)
    with compensating() as undo:
        undo(refund, 5)
