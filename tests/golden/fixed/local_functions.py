# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (each, parallel, sleep, seconds, workflow)
from tests.golden.shop import Order, charge


@workflow
def flow(order: Order, anything: Any, xs: list[str]) -> str:
    def pay(name: str, cents: int) -> str:
        return charge(name, cents).id

    def usual(name: str) -> str:
        return charge(name, 1).id

    def joined(names: list[str]) -> str:
        return ",".join(names)

    def again(name: str) -> None:
        for _ in xs:
            parallel(lambda: charge(name, 1), lambda: 1)

    parallel(lambda: pay(order.id, 5), lambda: pay(name=order.id, cents=1))
    names, cents = [order.id], 5
    for name in names:
        parallel(lambda: pay(name, cents), lambda: 1)
    parallel(lambda: usual(order.id), lambda: usual("x"))
    parallel(lambda: joined([order.id]), lambda: 1)
    parallel(lambda: again(order.id), lambda: 1)
    found, _ = parallel(lambda: pay(order.id, 1), lambda: 1)
    return found
