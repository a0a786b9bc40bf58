# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (execution_id, pure, workflow)
from tests.golden.shop import Line, Order


@pure
def value_of(lines: list[Line]) -> list[Line]:
    return lines[3:1:-1]


@pure
def any_of(order: Order) -> Any:
    return any(line.qty // line.unit_cents for line in order.lines)


@workflow
def flow(order: Order, text: str) -> None:
    any_of(order)
    a = sorted(set([line.sku for line in order.lines]))
    e = 5
    d = e
    f = text.upper()
    g = execution_id()
    h = sorted(order.lines, key=lambda line: line.sku)
    i = value_of(order.lines)
    k = len(set([line.sku for line in order.lines]))
    l = list(range(3))
    m = False
    for line in order.lines:
        if line.qty // line.unit_cents:
            m = True
