# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (compensating, each, parallel, workflow)
from tests.golden.shop import Line, Order, notify, refund


@workflow
def flow(order: Order) -> int:
    def tally(line: Line) -> str:
        return line.sku

    def rename() -> list[str]:
        return []

    parallel(rename, lambda: 1)
    names = each(order.lines, tally)
    with compensating() as undo:
        parallel(lambda: 1, lambda: notify("a", "b"))
        undo(refund, "p")
    return len(names)
