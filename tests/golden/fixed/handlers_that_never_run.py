# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (WaitTimeout, days, wait_for_event, workflow)
from tests.golden.shop import CardDeclined, Order, Payment, charge


@workflow
def flow(order: Order) -> None:
    try:
        charge(order.id, sum(line.qty for line in order.lines))
    except CardDeclined:
        pass
    try:
        charge(order.id, 5)
    except CardDeclined:
        pass
    except Exception:
        pass
    try:
        wait_for_event("paid", Payment, key=order.id, timeout=days(1))
    except WaitTimeout:
        pass
