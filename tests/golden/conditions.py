# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (minutes, seconds, task, wait_for_condition, workflow)
from tests.golden.shop import charge


@task
def arrived(order: str) -> str | None: ...


@workflow
def flow(n: int) -> None:
    wait_for_condition(arrived, every=minutes(n))("a")
    wait_for_condition(arrived)("a")
    wait_for_condition(arrived, every=minutes(5), often=True)("a")
    wait_for_condition(n, every=minutes(5))("a")
    wait_for_condition(arrived, every=seconds(0.5))("a")
    wait_for_condition(arrived, every=minutes(5), backoff=0.5)("a")
    wait_for_condition(arrived, every=minutes(5), most=minutes(1))("a")
    wait_for_condition(charge, every=minutes(5))("a", 1)
