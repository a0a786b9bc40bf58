# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import date, datetime

from holdfast import (minutes, sleep, sleep_until, task, workflow)
from tests.golden.shop import Order


@task
def now() -> datetime: ...


@workflow
def flow(order: Order, at: datetime, day: datetime, perhaps: datetime | None) -> None:
    sleep(minutes(5))
    sleep_until(day)
    if perhaps is not None:
        sleep_until(perhaps)
    sleep_until(at)
    moment = now()
    sleep_until(moment)
