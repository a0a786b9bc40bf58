# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (parallel, workflow)
from tests.golden.shop import Order, charge


def joined(*names: str) -> str:
    return ",".join(names)


def saved(text: str) -> str:
    with open("x", "w") as file:
        file.write(text)
    return text


def lines_of(text: str) -> list[str]:
    return text.splitlines(True)


def total_of(order: Order) -> int:
    total = 0
    for line in order.lines:
        total += line.unit_cents
    return total


def depth(n: int) -> int:
    return depth(n - 1) + 1 if n > 0 else 0


def counted(n: int) -> int:
    if n > 3:
        return "many"
    return n


@workflow
def flow(order: Order, orders: list[Order], n: int) -> int:
    rate = n

    def with_rate(cents: int, by: int = rate) -> int:
        return cents * by

    if n > 3:

        def small(k: int) -> int:
            return k

        def looped(k: int) -> int:
            for _ in range(3):
                k += 1
            return k

    joined(order.id, order.id)
    saved(order.id)
    lines = lines_of(order.id)
    totals = sorted(orders, key=lambda one: total_of(one))
    k = depth(n)
    counted(n, 3)
    total = with_rate(n) + small(n) + looped(n)
    return total + rate(n) + counted(n)
