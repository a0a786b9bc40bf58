# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import copy

from holdfast import workflow
from tests.golden.shop import Line, Order


def add(lines: list[Line], line: Line) -> int:
    lines.append(line)
    return len(lines)


def put(number: int, numbers: list[int] = []) -> None:
    numbers.append(number)


def odd(numbers: list[int]) -> None:
    numbers.append(1 & 2)


def top(numbers: list[int]) -> None:
    numbers.append(max(len(numbers), 2))


@workflow
def flow(order: Order, numbers: list[int]) -> int:
    line = Line(sku="a", qty=1, unit_cents=5)
    lines: list[Line] = []
    max = 9

    def down(n: int) -> None:
        lines.append(line)
        if n > 0:
            down(n - 1)

    add(order.lines, line)
    odd(numbers)
    top(numbers)
    put(1)
    same = numbers
    put(2, numbers)
    down(3)
    return add(lines, line) + len(same) + max
