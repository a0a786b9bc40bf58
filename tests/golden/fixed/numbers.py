# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from decimal import Decimal

from holdfast import (pure, workflow)

RATE = Decimal("0.19")


@pure
def quotient(x: float) -> tuple[float, float]:
    return divmod(x, 2)


@pure
def is_rate(price: Decimal) -> bool:
    return price == RATE


@pure
def bits(n: int) -> int:
    return n & ~n


@pure
def value_of(price: Decimal) -> Any:
    return price * 2


@pure
def value_of_2(price: Decimal) -> Any:
    return price + RATE


@pure
def is_so(price: Decimal) -> bool:
    return price < RATE


@pure
def float_of(text: str) -> Any:
    return float(text)


@pure
def value_of_4(n: int) -> Any:
    return ~n


@pure
def float_of_2(price: Decimal) -> Any:
    return float(price)


@workflow
def flow(n: int, m: int, x: float, price: Decimal, xs: list[float], text: str) -> None:
    value_of(price)
    value_of_2(price)
    is_so(price)
    float_of(text)
    value_of_4(n)
    float_of_2(price)
    e = quotient(x)
    f = int(text)
    q = +int(text)
    cents: int = 5
    i = is_rate(price)
    l = bits(n)
    p = pow(n, 2)
    s = price is not None
