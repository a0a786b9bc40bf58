# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import datetime

from holdfast import (WaitTimeout, days, each, first, sleep, sleep_until, workflow)
from tests.golden.shop import CardDeclined, Order, notify


@workflow
def flow(order: Order, n: int, at: datetime) -> None:
    try:
        first(lambda: sleep(days(1)), lambda: sleep(days(2)))
    except WaitTimeout:
        notify("a", "late")
    try:
        each(order.lines, lambda line: line.sku, tolerate=2)
    except CardDeclined:
        notify("a", "declined")
    try:
        sleep_until(at)
    except ValueError:
        notify("a", "naive")
