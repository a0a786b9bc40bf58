# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Colour, Order, notify


@workflow
def flow(order: Order, rate: float, colour: Colour) -> None:
    notify(order.id, f"{order.lines}")
    notify(order.id, f"{colour!r}")
    notify(order.id, f"{order}")
