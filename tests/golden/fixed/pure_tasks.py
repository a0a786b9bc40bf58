# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import pure, workflow
from tests.golden.shop import Order, Payment, charge


@pure
def receipt(found: Payment) -> str:
    return found.id


@workflow
def flow(order: Order) -> str:
    return receipt(charge(order.id, 5))
