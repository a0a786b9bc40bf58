# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (hours, minutes, seconds, task, wait_for_condition, workflow)
from tests.golden.shop import charge


@task
def arrived(order: str) -> str | None: ...


@workflow
def flow(n: int) -> None:
    wait_for_condition(arrived, every=minutes(5))("a")
    wait_for_condition(arrived, every=minutes(5))("a")
    wait_for_condition(arrived, every=minutes(5), backoff=2.0, most=hours(6))("a")
    wait_for_condition(arrived, every=minutes(5))("a")
    wait_for_condition(arrived, every=seconds(1))("a")
    wait_for_condition(arrived, every=minutes(5), backoff=1.5)("a")
    wait_for_condition(arrived, every=minutes(5), most=minutes(10))("a")
    charge("a", 1)
