# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from holdfast import (compensating, parallel, pure, shielded, workflow)
from tests.golden.shop import CardDeclined, Order, Payment, charge, notify, refund


class Stamped(BaseModel):
    id: str
    at: datetime = Field(default_factory=datetime.now)


@workflow
def child(order: Order) -> None: ...


@workflow
def flow(order: Order, n: int, names: list[str], pair: tuple[int, str], extra: Payment, at: datetime) -> None:
    names = list(names)
    names.append("a")
    row: list[str] = []
    row.append("3")
    qty = order.lines[0].qty
    a = 0 < qty < 5
    b = qty in [n, n]
    c = Stamped(id="a", at=at)
    d = [extra]
    payment: Payment = extra
    e = payment.id
    for index, line in enumerate(names):
        pass
    for index in range(10, 0, -1):
        pass
    f = {"a": 1}
    f = f | {"b": 2}
    match extra:
        case Payment(status="paid"):
            pass
    with shielded():
        notify("a", "b")
    g = order.id
    h = pair[1]
    try:
        charge(order.id, n)
    except CardDeclined as err:
        notify("a", str(err))
    child(order)


@workflow
def branches(order: Order) -> None:
    def branch() -> None:
        notify("a", "b")

    def other() -> None: ...

    with compensating() as undo:
        parallel(branch, other)
        undo(refund, "p")
