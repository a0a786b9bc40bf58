# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (WaitTimeout, days, sleep, wait_for_event, workflow)
from tests.golden.shop import CardDeclined, Order, Payment, charge


@workflow
def flow(order: Order) -> None:
    try:
        total = sum(line.qty for line in order.lines)
    except CardDeclined:
        pass
    try:
        charge(order.id, 5)
    except Exception:
        pass
    except CardDeclined:
        pass
    try:
        sleep(days(1))
    except CardDeclined:
        pass
    try:
        wait_for_event("paid", Payment, key=order.id)
    except WaitTimeout:
        pass
