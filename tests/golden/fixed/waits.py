# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from pydantic import BaseModel
from typing_extensions import TypedDict


from holdfast import (again, ask, minutes, publish, send, start, wait_for_event, workflow)
from tests.golden.shop import Order, Payment


class BankConfirmation(BaseModel):
    value: set[str]


class Batch(BaseModel):
    value: dict[int, Payment]


class Found(BaseModel):
    value: list[set[Payment]]


class Perhaps(BaseModel):
    value: set[Payment] | None


class Pair(BaseModel):
    value: tuple[int, int]


class Loose(TypedDict):
    id: str


@workflow
def flow(order: Order, n: int) -> None:
    wait_for_event("bank.confirmed", Payment, key=str(n))
    wait_for_event("paid", Payment, key=order.id)
    wait_for_event("confirmed", BankConfirmation, key=order.id)
    wait_for_event("batch", Batch, key=order.id)
    wait_for_event("found", Found, key=order.id)
    wait_for_event("perhaps", Perhaps, key=order.id)
    wait_for_event("pair", Pair, key=order.id)
    if order.coupon is not None:
        ask("Sure?", bool, assignee=order.coupon)
    wait_for_event("sent", Payment, key=order.id)
    wait_for_event("loose", Loose, key=order.id)
    wait_for_event("once", Payment, key=order.id)
    wait_for_event("twice", list[Payment], key=order.id)
    publish("done", n)
    send("done", n, key=order.id)
    start(flow, order, n)
    start(flow, order, n, delay=minutes(5))
    start(flow, order, n, delay=minutes(5))
    wait_for_event("cancelled", None, key=order.id, kept=False)
    return again(order, n)
