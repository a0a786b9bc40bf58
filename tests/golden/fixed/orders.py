# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (pure, workflow)
from tests.golden.shop import Line, Order


@pure
def titled(names: list[str]) -> list[str]:
    return sorted(names, key=str.title)


@workflow
def flow(order: Order, n: int, d: dict[str, int], names: list[str], flag: bool, marks: tuple[int, ...]) -> None:
    a = sorted(order.lines, key=lambda line: line.sku)
    c = sorted(names, reverse=True)
    least = d["x"]
    numbers = list(d.values())
    g = min(numbers, default=least)
    h = sorted(set(names))
    j = {name for name in names}
    k = len({line.sku: line for line in order.lines})
    for key, value in {line.sku: line for line in order.lines}.items():
        pass
    l = max(order.lines, key=lambda line: line.sku)
    m = titled(names)
    o = len(set(names))
    p = list(reversed(names))
    q = min(names)
    r = len({line.sku for line in order.lines})
    s = sorted(sorted(set(names)), key=len)
    t = len({(n,), marks})
