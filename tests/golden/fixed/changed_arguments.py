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
    numbers.append(0)


def top(numbers: list[int]) -> None:
    numbers.append(max(len(numbers), 2))


@workflow
def flow(order: Order, numbers: list[int]) -> int:
    line = Line(sku="a", qty=1, unit_cents=5)
    lines: list[Line] = []
    own_max = 9

    def down(n: int) -> None:
        for _ in range(n + 1):
            lines.append(line)

    own = copy.deepcopy(order.lines)
    add(own, line)
    order.lines = own
    odd(numbers)
    top(numbers)
    more: list[int] = []
    put(1, numbers=more)
    same = numbers
    numbers = copy.deepcopy(numbers)
    put(2, numbers)
    down(3)
    changed = add(lines, line)
    return changed + len(same) + own_max
