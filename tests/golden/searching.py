# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from pydantic import BaseModel

from holdfast import note, workflow


class Order(BaseModel):
    id: str
    weight: float
    customer: str | None = None


@workflow(search={"number": "order.number"})
def gone(order: Order) -> str:
    return order.id


@workflow(search={"weight": "order.weight"})
def weighed(order: Order) -> str:
    return order.id


@workflow(search={"stage": str})
def packed(order: Order) -> None:
    note(step="packed")
    note(stage=5)
