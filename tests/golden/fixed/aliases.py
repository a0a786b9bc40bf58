# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (each, parallel, workflow)
from tests.golden.shop import Line, Order


@workflow
def flow(order: Order, rows: list[list[int]], given: list[int]) -> list[str]:
    names: list[str] = []
    same = names
    names = list(names)
    names.append("a")
    for name in list(names):
        names.append(name)
    for place, name in list(enumerate(names)):
        names += [name]
    for row in rows:
        row = list(row)
        row.append(1)
    lines = order.lines
    lines = list(lines)
    lines.append(order.lines[0])
    kept: list[str] = []
    table = {"kept": kept}
    kept = list(kept)
    kept.extend(["x"])
    counts: dict[str, int] = {}
    other = counts if names else {"a": 1}
    counts = dict(counts)
    counts["a"] = 1
    taken: list[int] = []
    a, b = parallel(lambda: taken, lambda: 1)
    own = list(taken)
    own.append(b)
    a = list(a)
    a.append(2)
    first = second = [1]
    second = list(second)
    second.append(2)
    left, right = given, 1
    left = list(left)
    left[0] = 5
    pairs = [[1]]
    pair = pairs[0]
    pair = list(pair)
    pair[0] = 2

    def branch(line: Line) -> str:
        return line.sku

    names.extend(each(order.lines, branch))
    return names


@workflow
def returned(order: Order) -> list[str]:
    names = [order.id]
    try:
        return names
    finally:
        names = list(names)
        names.append("late")
