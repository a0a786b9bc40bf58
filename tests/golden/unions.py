# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from holdfast import workflow
from tests.golden.shop import Line, Order, Payment


class Cash(BaseModel):
    kind: Literal["cash"]
    cents: int


class Voucher(BaseModel):
    kind: Literal["voucher"]
    code: str


class Cat(BaseModel):
    name: str


class Dog(BaseModel):
    name: str
    age: int = 1


@workflow
def flow(either: Line | Payment, pet: Cat | Dog, paid: Cash | Voucher, number: int | float, maybe: Cash | None) -> None:
    a = isinstance(pet, Dog)
    b = paid.code
    c = isinstance(number, int)
    d = maybe.cents
    e = isinstance(paid, tuple([Cash]))
    f = paid.cents if paid.kind == "voucher" else 0
    g = either.id
    h = isinstance(maybe)
    i = type(paid)
    j = number.upper()
