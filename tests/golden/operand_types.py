# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Colour, Order, anything


@workflow
def flow(order: Order, n: int, x: float, text: str, colour: Colour) -> None:
    a = text - 1
    d = anything() ** 2
    e = -text
    for item in n:
        pass
    for item in range(x):
        pass
    g = n in colour
    h = {x: 1}
