# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (pure, task, workflow)
from tests.golden.shop import Order, Outcome


@task
def anything() -> str: ...


@workflow
def flow(order: Order, n: int) -> None:
    c = Outcome(order_id=order.id, status="refused")
    d = Outcome(order_id=str(n), status="shipped")
    f = Outcome(order_id=order.id, status="shipped", total=1.0)
    g = Outcome(order_id=anything(), status="shipped")
