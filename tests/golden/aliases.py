# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order, rows: list[list[int]]) -> list[str]:
    names: list[str] = []
    same = names
    both = [names]
    for name in names:
        names.append(name)
    for row in rows:
        row.append(1)
    names += ["x"]
    lines = order.lines
    lines.append(order.lines[0])
    return names
