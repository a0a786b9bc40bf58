# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Colour, Order, Payment, anything


@workflow
def flow(order: Order, payment: Payment, n: int, flag: bool, colour: Colour) -> None:
    a = flag == 1
    b = colour == "red"
    c = order == payment
    d = anything() == n
    e = n is order.lines
    f = order.coupon < "x"
    g = flag < True
    h = order.lines > order.lines
    i = [1] == (1,)
