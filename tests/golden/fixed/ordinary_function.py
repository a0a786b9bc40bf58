# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (pure, workflow)
from tests.golden.shop import Order


@pure
def vat(cents: int) -> int:
    return cents // 5


@pure
def tell(total: int) -> None:
    print(total)


@pure
def print_of(total: Any) -> Any:
    return print(total)


@workflow
def flow(order: Order) -> int:
    total = vat(order.lines[0].unit_cents)
    tell(total)
    return total + round(2.5)
