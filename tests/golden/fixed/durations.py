# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta

from holdfast import (days, each, minutes, seconds, sleep, wait_for_event, workflow)
from tests.golden.shop import Payment


@workflow
def flow(n: int, x: float) -> None:
    sleep(seconds(90))
    sleep(minutes(5))
    sleep(days(round(x)))
    wait_for_event("paid", Payment, key="k", timeout=seconds(n))
    for _ in range(10):
        sleep(days(365))
    wait_for_event("paid", Payment, key="k", timeout=days(1157))


@workflow(timeout=days(1_157))
def ages(n: int) -> int:
    return n


@workflow
def waits(names: list[str]) -> list[float]:
    return each(names, lambda name: minutes(5).total_seconds())
