# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order, prices: dict[str, int]) -> None:
    try:
        price = prices["x"]
    except KeyError:
        pass
    try:
        price = 1 // prices["y"]
    except (ArithmeticError, LookupError):
        pass
    try:
        price = prices["z"]
    except Exception as err:
        notify("a", f"failed: {err}")
        notify("a", type(err).__name__)
