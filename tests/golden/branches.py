# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (compensating, each, parallel, workflow)
from tests.golden.shop import Order, notify, refund


@workflow
def flow(order: Order) -> int:
    count = 0
    names: list[str] = []

    def tally(line) -> None:
        count += 1
        names.append(line.sku)

    def rename() -> None:
        nonlocal names
        names = []

    parallel(rename, lambda: 1)
    each(order.lines, tally)
    with compensating() as undo:
        parallel(lambda: undo(refund, "p"), lambda: notify("a", "b"))
    text = tally
    return tally(order.lines[0])
