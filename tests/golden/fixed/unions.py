# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from typing import Literal

from pydantic import BaseModel

from holdfast import (pure, workflow)
from tests.golden.shop import Order


class Cash(BaseModel):
    kind: Literal["cash"]
    cents: int


class Voucher(BaseModel):
    kind: Literal["voucher"]
    code: str


class Line(BaseModel):
    kind: Literal["line"] = "line"


class Payment(BaseModel):
    kind: Literal["payment"] = "payment"
    id: str


class Bird(BaseModel):
    song: str


class Dog(BaseModel):
    name: str
    age: int


@pure
def is_whole(number: int | float) -> bool:
    return isinstance(number, int)


@pure
def upper_of(number: int | float) -> Any:
    return number.upper()


@workflow
def flow(either: Line | Payment, pet: Bird | Dog, paid: Cash | Voucher, number: int | float, maybe: Cash | None) -> None:
    i = isinstance(paid, Cash)
    upper_of(number)
    a = isinstance(pet, Dog)
    if isinstance(paid, Voucher):
        b = paid.code
    c = is_whole(number)
    if maybe is not None:
        d = maybe.cents
    e = isinstance(paid, Cash)
    f = paid.cents if paid.kind == "cash" else 0
    if isinstance(either, Payment):
        g = either.id
    h = isinstance(maybe, Cash)
