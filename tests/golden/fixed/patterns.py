# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from holdfast import workflow
from tests.golden.shop import Outcome as Shipment
from tests.golden.shop import CardDeclined, Colour, Line, Order, Payment, charge, is_valid


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    name: str


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


@workflow
def flow(
    order: Order, d: dict[str, str], pet: Cat | Dog, colour: Colour, anything: Payment, n: int | str, xs: list[str],
    either: Order | Payment | str,
) -> str:
    if d.get("a") == "1":
        pass
    match pet:
        case Cat():
            pass
    match order:
        case Order(id="x"):
            pass
        case Order(coupon="x"):
            pass
        case Order(coupon=code):
            pass
    match order:
        case found if found.id == order.id:
            pass
    match order.lines:
        case [first, *others]:
            rest = others
    match xs:
        case [a]:
            pass
    match order.id:
        case "a":
            letter = "a"
        case "b":
            letter = "b"
    ok = is_valid(order)
    match order.id:
        case text if ok:
            pass
    match colour:
        case Colour.RED:
            answer = "red"
    match anything:
        case Payment(status="paid"):
            pass
    late = "text"
    match n:
        case int():
            late = "number"
    match either:
        case Order(id=id):
            late = id
        case Payment():
            late = "paid"
    match n:
        case str():
            pass
    match d:
        case {"kind": "card"}:
            pass
    match (n, 1):
        case (a, b):
            pass
    caught = None
    match order.id:
        case name if name == "x":
            caught = name
        case "b":
            answer = f"{caught}"
    try:
        charge(order.id, 5)
    except CardDeclined as err:
        match err:
            case CardDeclined() as error:
                late = str(error)
    return late
