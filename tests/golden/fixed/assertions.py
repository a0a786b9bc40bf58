# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge


@workflow
def flow(order: Order, n: int) -> None:
    assert order.lines, f"{n}"
    assert order.coupon
    x = charge(order.id, 5)
    assert order.coupon == "X" and x.id
    try:
        assert n > 0
    except AssertionError:
        pass
