# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (each, parallel, workflow)
from tests.golden.shop import Order, charge


@workflow
def flow(order: Order, anything: Any, xs: list[str]) -> str:
    def pay(name: str, cents: int) -> str:
        return charge(name, cents).id

    def usual(name: str = "x") -> str:
        return charge(name, 1).id

    def joined(*names: str) -> str:
        return ",".join(names)

    def again(name: str) -> None:
        parallel(lambda: again(name), lambda: 1)

    def forever() -> None:
        parallel(forever, forever)

    parallel(lambda: pay(order.id), lambda: pay(order.id, 1, 2))
    parallel(lambda: pay(*xs), lambda: pay(order.id, name=order.id))
    parallel(lambda: pay(order.id, "5"), lambda: pay(missing, 5))
    parallel(lambda: usual(order.id), lambda: usual(1))
    parallel(lambda: joined(order.id), lambda: 1)
    parallel(lambda: again(order.id), lambda: 1)
    parallel(forever, lambda: 1)
    return pay(order.id)
