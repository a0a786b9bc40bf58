# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from holdfast import (compensating, parallel, shielded, workflow)
from tests.golden.shop import CardDeclined, Order, charge, notify, refund, vat


class Stamped(BaseModel):
    id: str
    at: datetime = Field(default_factory=datetime.now)


@workflow
def child(order: Order, at: object = object()) -> None: ...


@workflow
def flow(order: Order, n: int, names: list[str], pair: tuple[int, str], extra: Any) -> None:
    names = list(names)
    names.append("a", "b")
    row = (1, 2)
    row.append(3)
    a = 0 < order.lines[0].qty < 5
    b = order.lines in {n}
    c = Stamped(id="a")
    d = [extra]
    e = extra.name
    for one, two in names:
        pass
    for index in range(0, 10, 0):
        pass
    f = {"a": 1}
    f |= {"b": 2}
    match order:
        case vat():
            pass
    with shielded() as shield:
        notify("a", "b")
    g = order[0]
    h = pair[2]
    try:
        charge(order.id, n)
    except CardDeclined as err:
        notify("a", err)
    child(order)


@workflow
def branches(order: Order) -> None:
    def branch() -> None:
        undo(refund, "p")

    @staticmethod
    def other() -> None: ...

    with compensating() as undo:
        parallel(branch, lambda: 1)
