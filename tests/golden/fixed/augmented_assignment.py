# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order) -> int:
    total = 0
    for line in order.lines:
        total = total + line.qty
    return total
