# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (each, parallel, pure, task, workflow)
from tests.golden.shop import Order, charge


def joined(names: list[str]) -> str:
    return ",".join(names)


@task
def saved(text: str) -> str:
    with open("x", "w") as file:
        x = file.write(text)
    return text


@pure
def splitlines_of(text: str) -> list[str]: return text.splitlines(True)


def lines_of(text: str) -> list[str]:
    return splitlines_of(text)


@pure
def total_of(order: Order) -> int:
    total = 0
    for line in order.lines:
        total += line.unit_cents
    return total


def depth(n: int) -> int:
    found = 0
    while n > 0:
        found, n = found + 1, n - 1
    return found


def counted(n: int) -> int | str:
    if n > 3:
        return "many"
    return n


@workflow
def flow(order: Order, orders: list[Order], n: int) -> int:
    rate = n

    def with_rate(cents: int, by: int) -> int:
        return cents * by

    def small(k: int) -> int:
        return k

    def looped(k: int) -> int:
        for _ in range(3):
            k += 1
        return k

    def rate_of(k: int) -> int:
        return rate * k

    names = joined([order.id, order.id])
    saved(order.id)
    lines = lines_of(order.id)
    totals = each(orders, lambda one: total_of(one))
    x = total_of(order)
    k = depth(n)
    m = counted(n)
    total = with_rate(n, by=rate) + small(n) + looped(n)
    return total + rate_of(n) + (n if counted(n) == "many" else 0)
