# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import os
from typing import Any

from holdfast import (pure, task, workflow)
from tests.golden.shop import Order, vat


@pure
def join_of(total: Any) -> Any: return os.path.join(str(total), "x")


@pure
def vat_of(cents: int) -> int:
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
    folder = join_of(total)
    folder = vat_of(total)
    return total + round(2.5)
