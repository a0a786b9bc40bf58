# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta

from holdfast import (Retry, task, workflow)
from tests.golden.shop import other, render


@task(timeout=timedelta(seconds=1.5))
def odd() -> None: ...


@workflow
def flow(order_id: str) -> None:
    render(order_id)
    odd()
    other()
    odd.options(timeout=timedelta(seconds=5), retry=Retry(max_attempts=0))()
