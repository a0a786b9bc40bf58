# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import execution_id, workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order, text: str) -> None:
    a = {line.sku for line in order.lines}
    c = [lambda x: x]
    d = text.upper()()
    g = execution_id(text)
    h = sorted(order.lines, key=len)
    i = order.lines[3:1:-1]
    k = set(order.lines)
    l = range(3)
    m = any(line.qty // line.unit_cents for line in order.lines)
