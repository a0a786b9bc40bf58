# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order) -> None:
    while True:
        if order.lines:
            break
            notify("a", "b")
        else:
            return
    return
    notify("a", "b")


@workflow
def lost_break(order: Order) -> int:
    while True:

        class Found: ...

        with open(order.id):
            break
    return 1
