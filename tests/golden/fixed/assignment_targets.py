# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (pure, task, workflow)
from tests.golden.shop import Line, Order, Payment, charge, notify


@task
def charge_twice(order_id: str, cents: int) -> tuple[Payment, Payment]: ...


@workflow
def flow(order: Order, d: dict[str, int]) -> None:
    order = order.model_copy(update={"coupon": "FREE"})
    a, coupon = 1, "FREE"
    a, b, c = 1, 2, 3
    both = charge(order.id, 5)
    one, two = charge_twice(order.id, 5)
    first, rest = order.lines[0], order.lines[1:]
    count: int = 5
    notify(one.id, two.id)
