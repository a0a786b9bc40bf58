# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (WaitTimeout, days, each, first, sleep, workflow)
from tests.golden.shop import CardDeclined, Order, notify


@workflow
def flow(order: Order, n: int) -> None:
    try:
        first(lambda: sleep(days(1)), lambda: sleep(days(2)))
    except WaitTimeout:
        notify("a", "late")
    try:
        each(order.lines, lambda line: line.sku, tolerate=2)
    except CardDeclined:
        notify("a", "declined")
