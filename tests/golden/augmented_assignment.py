# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Line, Order


@workflow
def flow(order: Order) -> None:
    for line in order.lines:
        Line(sku="x", qty=1, unit_cents=2).qty += line.qty
