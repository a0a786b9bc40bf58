# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import CardDeclined, Order, Shouting, charge, vat


@workflow
def flow(order: Order, n: int) -> None:
    if n == 1:
        raise
    if n == 2:
        raise Shouting("x")
    if n == 3:
        raise CardDeclined("a", "b")
    if n == 4:
        raise CardDeclined(n)
    if n == 5:
        raise vat
    if n == 6:
        raise KeyError("x")
    if n == 7:
        raise CardDeclined("x") from vat
    last = None
    for attempt in range(n):
        try:
            charge(order.id, n)
        except CardDeclined as err:
            last = err
    kind = type(last).__name__
    raise last
