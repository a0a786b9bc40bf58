"""Orders and loans of 100 customers: some fail, some wait for people, some are tried again."""

from __future__ import annotations

from pydantic import BaseModel

from holdfast import Retry, ask, days, role, task, workflow


class Declined(Exception):  # noqa: N818
    pass


class OutOfStock(Exception):  # noqa: N818
    pass


class Fraud(Exception):  # noqa: N818
    pass


class Busy(Exception):  # noqa: N818
    pass


class Order(BaseModel):
    number: int
    customer: str


#: What becomes of an order, by its number modulo 100.
ERRORS: tuple[type[Exception], ...] = (Declined, OutOfStock, Fraud)
RETRIED = 3


@task(retry=Retry(max_attempts=3, interval=days(20), on=(Busy,), jitter=False))
def charge(order: Order) -> int:
    part = order.number % 100
    if part < len(ERRORS):
        raise ERRORS[part]
    if part == RETRIED:
        raise Busy
    return order.number


@workflow(search={"customer": "order.customer"})
def order(order: Order) -> int:
    charged = charge(order)
    if order.number % 100 < 44:
        ask("Ship it?", bool, assignee=role("clerk"))
    return charged


@workflow(search={"customer": "order.customer"})
def loan(order: Order) -> int:
    charged = charge(order)
    if order.number % 100 < 44:
        ask("Grant it?", bool, assignee=role("credit_manager"))
    return charged
