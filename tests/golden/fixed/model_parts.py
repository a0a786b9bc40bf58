# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from holdfast import TaskError, pure, workflow
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

    def largest(self) -> int:
        found = 0
        for line in self.lines:
            found = max(found, line.qty)
        return found

    def depth(self) -> int:
        found = 0
        for line in self.lines:
            found += 1
        return found


class Refused(TaskError):
    reason: str
    price: str

    def __init__(self, reason: str, price: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.price = price


class Numbered(TaskError):
    def __init__(self, number: int) -> None:
        super().__init__(f"{number}")


class Odd(TaskError):
    reason: str

    def __init__(self, reason: str) -> None:
        text = reason
        super().__init__(reason)
        self.reason = reason


@workflow
def flow(order: Order, basket: Basket, fixed: Fixed, constant: Constant, point: Point) -> int:
    fixed = fixed.model_copy(update={"n": 1})
    constant = replace(constant, n=2)
    point = point._replace(x=3)
    order.coupon = "FREE"
    order.coupon = str(5)
    if basket.main is not None:
        basket.main.qty = 1
    key = is_valid(order)
    basket.lines[int(key)].qty = 2
    lines = order.lines
    order = copy.deepcopy(order)
    order.lines.append(basket.lines[0])
    line = lines[0]
    line = line.model_copy()
    line.qty = 3
    basket.lines = [one.model_copy(update={"qty": one.qty + 1}) for one in basket.lines]
    kept = [1, 2, 3]
    kept = [one for place, one in enumerate(kept) if place % 2]
    order.id += str(basket.largest())
    return basket.depth()


class State(BaseModel):
    x: int


@dataclass
class Cart:
    status: str


@pure
def renamed(checked: Checked) -> Checked:
    return checked.model_copy(update={"text": "x"})


@workflow
def odd(order: Order, checked: Checked, point: Point, n: int) -> None:
    cart = Cart(status="open")
    a = replace(cart, status="closed")
    b = point._replace(x=3)
    id: list[str] = []
    id[0:1] = []
    n = State(x=5)
    n.x = 5
    checked = renamed(checked)


@workflow
def raised(order: Order, basket: Basket, n: int) -> None:
    if n == 1:
        raise Refused(order.id, price=str(n))
    if n == 3:
        raise Numbered(n)
    if n == 2:
        raise Odd(order.id)
    raise Refused(str(n), "1")
