# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (compensating, each, minutes, parallel, sleep, workflow)
from tests.golden.shop import CardDeclined, Line, Order, Outcome, charge, notify, refund


@workflow
def value(order: Order, names: list[str]) -> Outcome:
    a = missing
    b = a + 1
    if a and b > 2 or a.id == "x":
        names = list(a)
    for line in a:
        names.append(line.sku)
    c = [x.id for x in a if x] + [a[0]]
    d, e = a
    d.append(e)
    charge(a.id, cents=b)
    notify(f"{a} {b}", str(c))
    sleep(minutes(a))
    while a not in names:
        a += 1
    found = each(a, lambda one: charge(one.id, one.cents))
    one, two = parallel(lambda: a, lambda: notify(a, b))
    match a:
        case Line(sku="x"):
            pass
        case [first, *_]:
            notify(first, one.id)
    with compensating() as undo:
        undo(refund, a.payment)
    assert a, b
    return Outcome(order_id=a.id, status=a)


@workflow
def call(order: Order) -> str:
    payment = charge(order.id)
    notify(payment.id, payment.nothing)
    if payment.status == "paid":
        return payment.id
    return payment.status + payment.id


@workflow
def step(order: Order) -> str:
    for line in order.lines:
        payment = charge(line.skew, line.unit_cents)
        try:
            refund(payment.id)
        except CardDeclined:
            pass
    return order.id


@workflow
def branch(order: Order) -> list[str]:
    def packed(line: Line) -> str:
        parcel = pack(line)
        notify(parcel.id, parcel.to)
        return parcel.id

    parcels = each(order.lines, packed)
    return [parcel.upper() for parcel in parcels]


@workflow
def ways_out(order: Order, n: int) -> str:
    while True:
        if n > 5:
            return lost
        if n > 3:
            raise CardDeclined(gone)


@workflow
def jumps(order: Order) -> str:
    while True:
        if nowhere:
            break
    later = elsewhere
    return later
