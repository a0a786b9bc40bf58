# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta
from typing import NewType

from holdfast import (minutes, role, sleep, workflow)
from tests.golden.shop import Order

UserId = NewType("UserId", str)


@workflow
def flow(order: Order, n: int, names: list[str], numbers: list[int]) -> None:
    a = sum()
    b = list(names, names)
    c = any(names, names)
    d = UserId(n)
    e = [pair for pair in enumerate(names, n)]
    f = [one for one in range(0, n, n)]
    g = [one for one in range(0, n, 0)]
    sleep(minutes(1, 2))
    sleep(timedelta(**dict(hours=1)))
    h = max(names, reverse=True)
    i = list({1, 2})
    j = sum(names)
    k = role(n)
    l = len(names, names)
    m = sorted(name async for name in names)
