# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import date, datetime

from holdfast import (minutes, sleep, sleep_until, workflow)
from tests.golden.shop import Order


@workflow
def flow(order: Order, at: datetime, day: date, perhaps: datetime | None) -> None:
    sleep_until(minutes(5))
    sleep_until("2026-01-01T00:00:00Z")
    sleep_until(day)
    sleep_until(perhaps)
    sleep_until()
    sleep_until(at, at)
    sleep_until(order.delivery)
    sleep(at)
