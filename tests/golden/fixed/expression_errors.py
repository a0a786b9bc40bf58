# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order, prices: dict[str, int], numbers: list[int]) -> None:
    price = max(numbers, default=0)
    try:
        price = 1 // prices["x"]
    except (ArithmeticError, LookupError):
        pass
    price = prices.get("y", 0)
    if price != 0:
        price = 1 // price
    try:
        price = prices.pop("z")
    except Exception:
        notify("a", "failed")
        notify("a", "an error")
