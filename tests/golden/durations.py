# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta

from holdfast import (days, each, minutes, seconds, sleep, wait_for_event, workflow)
from tests.golden.shop import Payment


@workflow
def flow(n: int, x: float) -> None:
    sleep(seconds(0.5))
    sleep(5)
    sleep(minutes(0))
    sleep(days(x))
    wait_for_event("paid", Payment, key="k", timeout=n)
    sleep(days(3_650))
    wait_for_event("paid", Payment, key="k", timeout=days(3_650))


@workflow(timeout=days(3_650))
def ages(n: int) -> int:
    return n


@workflow
def waits(names: list[str]) -> list[timedelta]:
    return each(names, lambda name: minutes(5))
