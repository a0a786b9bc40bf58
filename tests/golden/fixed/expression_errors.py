# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order, prices: dict[str, int]) -> None:
    if "x" in prices:
        price = prices["x"]
    price = prices.get("y", 0)
    if price != 0:
        price = 1 // price
    try:
        price = prices["z"]
    except Exception:
        notify("a", "failed")
        notify("a", "an error")
