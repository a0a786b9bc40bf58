# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order, prices: dict[str, int], numbers: list[int]) -> None:
    try:
        price = max(number for number in numbers)
    except ValueError:
        pass
    try:
        price = divmod(1, prices.pop("y"))[0]
    except (ArithmeticError, LookupError):
        pass
    try:
        price = max(set(numbers))
    except Exception as err:
        notify("a", f"failed: {err}")
        notify("a", type(err).__name__)
