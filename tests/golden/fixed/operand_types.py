# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (pure, task, workflow)
from tests.golden.shop import Colour, Order


@task
def anything() -> int: ...


@pure
def rest(text: str) -> str:
    return text[:-1]


@pure
def value_of_2(x: float) -> Any:
    return x // 2.0


@workflow
def flow(order: Order, n: int, x: float, text: str, colour: Colour) -> None:
    value_of_2(x)
    a = rest(text)
    a = int(text) - 1
    e = -int(text)
    total: int = anything() ** 2
    for item in range(n):
        pass
    for item in range(round(x)):
        pass
    g = colour in [Colour.RED]
    h = {int(x): 1}
