# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import pure, workflow
from tests.golden.shop import Order, charge


@pure
def receipt(name: str) -> str:
    return charge(name, 5).id


@workflow
def flow(order: Order) -> str:
    return receipt(order.id)
