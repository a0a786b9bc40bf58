# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order, text: str) -> None:
    a = {line.sku for line in order.lines}
    b = [x for line in order.lines for x in [line.sku]]
    c = lambda x: x
    d = (e := 5)
    f = text[0]
    g = text.strip()
    h = sorted(order.lines, key=len)
    i = order.lines[::2]
    j = [*order.lines]
    k = set(order.lines)
    l = range(3)
    m = any(line.qty // line.unit_cents for line in order.lines)
    n = int(text)
    o = isinstance(text, str)
    p = text.split()
