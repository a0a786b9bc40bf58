# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order) -> None:
    while True:
        if order.lines:
            notify("a", "b")
            break
        else:
            return
    notify("a", "b")
    return


@workflow
def lost_break(order: Order) -> int:
    while True:
        notify(order.id, "b")
        break
    return 1
