# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import datetime

from holdfast import (compensating, pure, task, workflow)
from tests.golden.shop import Order, Payment, refund
from tests.golden.shop import other as started


@task
def charge(order_id: str, cents: int) -> None: ...
@task
def charge_all(order_id: str, cents: list[str]) -> None: ...
@task
def notify(to: str | None, text: Payment) -> None: ...
@task
def notify_all(to: list[str], text: datetime) -> None: ...
@pure
def is_valid(order: Payment) -> bool:
    return bool(order.id)


@pure
def is_known(order: dict[str, str]) -> bool:
    return bool(order)


@workflow
def flow(order: Order, n: int, maybe: str | None, at: datetime, payment: Payment, names: list[str]) -> None:
    charge(str(n), 5)
    charge(order.id, int(order.id))
    charge_all(order.id, cents=names)
    notify(None, payment)
    is_valid(payment)
    is_known({"id": order.id})
    started(str(n))
    notify_all(names, at)
    with compensating() as undo:
        undo(refund, str(5))
