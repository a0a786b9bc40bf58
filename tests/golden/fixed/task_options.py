# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (Retry, minutes, parallel, seconds, task, workflow)
from tests.golden.shop import charge


@task(timeout=seconds(90))
def refund(order_id: str) -> None: ...


@workflow
def flow(n: int) -> None:
    charge.options(timeout=minutes(5), retry=Retry(max_attempts=3))("a", 1)
    refund("a")
    charge("a", 1)
    parallel(lambda: charge.options(timeout=minutes(5))("a", 1), lambda: 1)
