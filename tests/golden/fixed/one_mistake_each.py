# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (each, task, workflow)
from tests.golden.shop import CardDeclined, Line, Order, Outcome, Payment, charge, notify, refund

missing = ["a"]


@task
def pack(line: Line) -> Payment: ...


@workflow
def value(order: Order, names: list[str]) -> Outcome:
    a = missing
    notify(a[0], str(len(names)))
    return Outcome(order_id=order.id, status="shipped")


@workflow
def call(order: Order) -> str:
    payment = charge(order.id, 5)
    if payment.status == "paid":
        return payment.id
    return payment.status + payment.id


@workflow
def step(order: Order) -> str:
    for line in order.lines:
        payment = charge(line.sku, line.unit_cents)
        try:
            refund(payment.id)
        except CardDeclined:
            pass
    return order.id


@workflow
def branch(order: Order) -> list[str]:
    def packed(line: Line) -> str:
        parcel = pack(line)
        notify(parcel.id, parcel.status)
        return parcel.id

    parcels = each(order.lines, packed)
    return [parcel.upper() for parcel in parcels]


@workflow
def ways_out(order: Order, n: int) -> str:
    while True:
        if n > 5:
            return order.id


@workflow
def jumps(order: Order) -> str:
    while True:
        if order.lines:
            break
    later = order.id
    return later
