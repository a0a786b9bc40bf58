# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from dataclasses import dataclass

from holdfast import workflow
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


@workflow
def flow(order: Order, checked: Checked, bounded: Bounded, changes: dict[str, str], point: Point) -> None:
    a = order.model_copy(update={"price": 5})
    b = order.model_copy(update={"coupon": 5})
    c = order.model_copy(update=changes)
    d = checked.model_copy(update={"text": "x"})
    e = bounded.model_copy(update={"amount": 5})
    g = Point("1")
    h = Point(1, 2, 3)
    i = Point()
    j = Sum(1)
    k = point.z
    l = order.copy()
    m = Order.model_validate(changes, strict=True)
    n = Order(id="a", **changes)
    o = Point(**changes)
