# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta
from typing import NewType

from holdfast import (days, each, hours, minutes, pure, role, sleep, task, workflow)
from tests.golden.shop import Order

UserId = NewType("UserId", str)


@pure
def sum_of(names: list[str]) -> int:
    return sum(names)


@pure
def role_of(n: int) -> str:
    return role(n)


@task
def pack(name: str) -> None: ...


@workflow
def flow(order: Order, n: int, names: list[str], numbers: list[int]) -> None:
    a = sum(numbers)
    b = list(names)
    c = any(names)
    d = UserId(str(n))
    e = [pair for pair in enumerate(names, 1)]
    f = [one for one in range(0, n, 2)]
    sleep(minutes(5))
    sleep(timedelta(hours=1, minutes=30))
    h = max(numbers, default=0)
    i = sorted({1, 2})
    j = sum_of(names)
    k = role_of(n)
    l = len(names)
    each(names, pack)
