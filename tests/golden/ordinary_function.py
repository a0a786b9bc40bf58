# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import os
from collections.abc import Callable

from holdfast import workflow
from tests.golden.shop import Order, vat


def made(percent: int) -> Callable[[int], int]:
    return lambda cents: cents * percent // 100


vat_of = made(20)


@workflow
def flow(order: Order) -> int:
    total = vat(order.lines[0].unit_cents)
    print(total)
    folder = os.path.join(str(total), "x")
    folder = vat_of(total)
    return total
