# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from decimal import Decimal

from holdfast import workflow

RATE = Decimal("0.19")


@workflow
def flow(n: int, m: int, x: float, price: Decimal, xs: list[float], text: str) -> None:
    e = divmod(x, 2)
    f = int(text, 16)
    l = n & 1
    p = pow(n, m, 5)
    q = +text
    r = ~n
    s = price or 0
    v = float("-inf")
