# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter

from holdfast import (pure, workflow)
from tests.golden.shop import Bounded, Checked, Order


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclass
class Sum:
    x: int

    def __post_init__(self) -> None:
        self.x += 1


@pure
def recoded(checked: Checked) -> Checked:
    return checked.model_copy(update={"text": "x"})


@pure
def raised(bounded: Bounded) -> Bounded:
    return bounded.model_copy(update={"amount": 5})


@pure
def made(x: int) -> Sum:
    return Sum(x)


@workflow
def flow(order: Order, checked: Checked, bounded: Bounded, changes: dict[str, str], point: Point) -> None:
    a = order.model_copy(update={"coupon": "x"})
    c = recoded(checked)
    e = raised(bounded)
    f = order.model_copy()
    g = Point(x=1, y=2)
    j = made(1)
    k = point.y
    l = order.model_copy()
    m = Order.model_validate(changes)
    n = Order.model_validate({"id": "a", **changes})
    o = TypeAdapter(Point).validate_python(changes)
