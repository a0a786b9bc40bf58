# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import datetime

from holdfast import (days, each, first, sleep, sleep_until, wait_for_event, workflow)
from holdfast import WaitTimeout
from tests.golden.shop import CardDeclined, Order, Payment, charge, notify


@workflow
def flow(order: Order, n: int, at: datetime) -> None:
    try:
        first(lambda: wait_for_event("paid", Payment, key=order.id, timeout=days(1)), lambda: sleep(days(2)))
    except WaitTimeout:
        notify("a", "late")
    try:
        each(order.lines, lambda line: charge(line.sku, 1))
    except CardDeclined:
        notify("a", "declined")
    d = {"a": 1}
    if "k" in d:
        n = d.get("k", 0)
    try:
        sleep_until(at)
    except Exception:
        notify("a", "naive")
