# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (pure, task, workflow)
from tests.golden.shop import Bounded, Checked, Order, Outcome


@pure
def checked(text: str) -> Checked:
    return Checked(text=text)


@pure
def bounded(amount: int) -> Bounded:
    return Bounded(amount=amount)


@task
def anything() -> str: ...


@workflow
def flow(order: Order, n: int) -> None:
    a = checked(order.id)
    b = bounded(n)
    c = Outcome(order_id=order.id, status="refused")
    d = Outcome(order_id=str(n), status="shipped")
    f = Outcome(order_id=order.id, status="shipped", total=1.0)
    g = Outcome(order_id=anything(), status="shipped")
