# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge


@workflow
def flow(order: Order, n: int) -> None:
    assert order.lines, n
    assert order.coupon
    assert order.coupon == "X" and charge(order.id, 5).id
    try:
        assert n > 0
    except ValueError:
        pass
