# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import os

from holdfast import workflow
from tests.golden.shop import Order, vat


@workflow
def flow(order: Order) -> int:
    total = vat(order.lines[0].unit_cents)
    print(total)
    folder = os.getcwd()
    return total + round(2.5, 1)
