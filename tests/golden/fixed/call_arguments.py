# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from pydantic import SecretStr
from typing_extensions import TypedDict

from holdfast import (Retry, compensating, each, minutes, parallel, task, workflow)
from tests.golden.shop import Order, Payment, charge, notify, refund


@task
def gather(first: str, second: int) -> None: ...


@task
def pay(id: str, status: str) -> None: ...


@task
def pack(sku: str) -> None: ...


@workflow
def flow(order: Order, n: int) -> None:
    charge(order.id, 5)
    notify("a", text="b")
    gather("a", 5)
    each(order.lines, lambda line: notify("a", line.sku), concurrency=n)
    each(order.lines, lambda item: pack(item.sku))
    parallel(lambda: pack("a"), lambda: pack("b"))
    with compensating() as undo:
        payment = charge(order.id, 5)
        undo(refund, payment.id)
    refund("p")
    charge.options(timeout=minutes(5), retry=Retry(max_attempts=3))(order.id, 5)


class Bill(TypedDict):
    order_id: str
    cents: int


@task
def sign(text: str, token: SecretStr) -> None: ...


@workflow
def spread(bill: Bill, payment: Payment, token: SecretStr, texts: dict[str, str]) -> None:
    charge(**bill)
    notify("a", **texts)
    pay(**payment.model_dump())
    refund(**texts)
    sign(token=token, **texts)
    charge(order_id="a", cents=bill["cents"])
