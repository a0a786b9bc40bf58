# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta

from holdfast import (Retry, days, seconds, task, wait_for_event, workflow)
from tests.golden.shop import Payment, other


@task
def begin(order_id: str) -> None: ...


@task(timeout=seconds(90))
def odd() -> None: ...


@workflow
def flow(order_id: str) -> None:
    begin(order_id)
    wait_for_event("rendered", Payment, key=order_id, timeout=days(1))
    odd()
    other(order_id)
    odd.options(timeout=timedelta(seconds=5), retry=Retry(max_attempts=1))()
