# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from holdfast import TaskError, workflow
from tests.golden.shop import Checked, Line, Order, is_valid


class Point(NamedTuple):
    x: int


class Fixed(BaseModel):
    model_config = ConfigDict(frozen=True)
    n: int


@dataclass(frozen=True)
class Constant:
    n: int


class Basket(BaseModel):
    lines: list[Line]
    main: Line | None = None
    price: float = 0.0

    @property
    def largest(self) -> int:
        found = 0
        for line in self.lines:
            found = max(found, line.qty)
        return found

    def depth(self) -> int:
        return self.depth() + 1


class Refused(TaskError):
    reason: str
    price: float

    def __init__(self, reason: str, price: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.price = price


class Numbered(TaskError):
    def __init__(self, number: int) -> None:
        super().__init__(number)


class Odd(TaskError):
    def __init__(self, reason: str) -> None:
        if reason:
            super().__init__(reason)


@workflow
def flow(order: Order, basket: Basket, fixed: Fixed, constant: Constant, point: Point) -> int:
    fixed.n = 1
    constant.n = 2
    point.x = 3
    order.copuon = "FREE"
    order.coupon = 5
    basket.main.qty = 1
    basket.lines[is_valid(order)].qty = 2
    lines = order.lines
    order.lines.append(basket.lines[0])
    line = lines[0]
    line.qty = 3
    for one in basket.lines:
        one.qty += 1
    kept = [1, 2, 3]
    del kept[::2]
    order.id += basket.largest
    return basket.depth()


@workflow
def odd(order: Order, checked: Checked, point: Point, n: int) -> None:
    a = replace(n, x=2)
    b = point._replace(y=3)
    order.id[0:1] = []
    n.x = 5
    checked.text = "x"


@workflow
def raised(order: Order, basket: Basket, n: int) -> None:
    if n == 1:
        raise Refused(order.id, basket.price)
    if n == 3:
        raise Numbered(n)
    if n == 2:
        raise Odd(order.id)
    raise Refused(n, 1)
