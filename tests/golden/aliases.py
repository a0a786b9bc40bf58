# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (each, parallel, workflow)
from tests.golden.shop import Line, Order, Outcome, charge, notify


@workflow
def flow(order: Order, rows: list[list[int]], given: list[int]) -> list[str]:
    names: list[str] = []
    same = names
    names.append("a")
    names = list(names)
    for name in names:
        names.append(name)
    for place, name in enumerate(names):
        names += [name]
    for row in rows:
        row.append(1)
    lines = order.lines
    lines.append(order.lines[0])
    kept: list[str] = []
    table = {"kept": kept}
    kept.extend(["x"])
    counts: dict[str, int] = {}
    other = counts if names else {"a": 1}
    counts["a"] = 1
    taken: list[int] = []
    grown: list[str] = []
    a, b = parallel(lambda: taken, lambda: 1)
    taken.append(b)
    a.append(2)
    for inner in [grown]:
        grown.append("x")
    first = second = [1]
    second.append(2)
    left, right = given, 1
    left[0] = 5
    for line in order.lines:
        grown.append(line.sku)
        last = grown
    pairs = [[1]]
    pair = pairs[0]
    pair[0] = 2
    def branch(line: Line) -> list[str]:
        names.append("inside")
        return names
    each(order.lines, branch)
    return names


@workflow
def returned(order: Order) -> list[str]:
    names = [order.id]
    try:
        return names
    finally:
        names.append("late")
