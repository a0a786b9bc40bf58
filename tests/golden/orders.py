# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Line, Order


@workflow
def flow(order: Order, n: int, d: dict[str, int], names: list[str], flag: bool, marks: tuple[int, ...]) -> None:
    a = sorted(order.lines)
    c = sorted(names, reverse=flag)
    e = sorted(order.lines, key=lambda line: order.coupon)
    f = min(order.lines)
    g = min(names, default=d["x"])
    h = list(set(names))
    i = [name for name in set(names)]
    j = {name for name in names}
    k = len({line.sku: line for line in order.lines}.items())
    l = max(order.lines, key=Line)
    m = sorted(names, key=str.title)
    o = set([[1]]) == set()
    p = reversed(names)
    q = min(names, names)
    r = len({(line,) for line in order.lines})
    s = sorted(set(names), key=len)
    t = len({(flag,), marks})
