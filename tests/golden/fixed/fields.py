# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (pure, task, workflow)
from tests.golden.shop import Order, Outcome, notify


@task
def keep(order: Order) -> None: ...


@workflow
def flow(order: Order) -> Outcome:
    notify(order.customer_email, "b")
    notify(order.id, str(len(order.id)))
    keep(order)
    notify(order.model_copy(update={"coupon": "x"}).id, order.id)
    return Outcome(order_id=order.id, status="shipped", total=1.0)
