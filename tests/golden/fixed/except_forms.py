# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (TaskError, workflow)
from tests.golden.shop import Order, charge


class OutOfStock(TaskError): ...


@workflow
def flow(order: Order) -> None:
    try:
        charge(order.id, 5)
    except Exception:
        pass
    try:
        charge(order.id, 5)
    except OutOfStock:
        pass
