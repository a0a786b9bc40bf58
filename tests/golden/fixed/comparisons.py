# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (task, workflow)
from tests.golden.shop import Colour, Order, Payment


@task
def anything() -> int: ...


@workflow
def flow(order: Order, payment: Payment, n: int, flag: bool, colour: Colour) -> None:
    a = flag == True
    b = colour == Colour.RED
    c = order.id == payment.id
    d = anything() == n
    e = n == len(order.lines)
    if order.coupon is not None:
        f = order.coupon < "x"
    g = int(flag) < 1
    h = len(order.lines) > len(order.lines)
    i = [1] == [1]
