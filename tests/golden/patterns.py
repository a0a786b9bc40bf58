# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from holdfast import workflow
from tests.golden.shop import CardDeclined, Colour, Line, Order, Payment, charge, is_valid


class Cat(BaseModel):
    name: str


class Dog(BaseModel):
    name: str


@workflow
def flow(
    order: Order, d: dict[str, int], pet: Cat | Dog, colour: Colour, anything: Any, n: int | str,
    size: int | float,
) -> str:
    match d:
        case {"a": 1}:
            pass
    match pet:
        case Cat():
            pass
    match order:
        case Order("x"):
            pass
        case Order(ident="x"):
            pass
        case Line():
            pass
        case Shipment(id=number):
            pass
        case Order(coupn=code):
            pass
        case order.id:
            pass
    match order.lines:
        case [first, *rest]:
            pass
        case [*_, last]:
            pass
    match order.id:
        case [a]:
            pass
        case None:
            pass
        case 5:
            pass
        case ("a" as letter) | ("b" as letter):
            pass
        case text if is_valid(order):
            pass
    match colour:
        case Colour.RED:
            answer = "red"
        case Colour.RED:
            answer = "never"
        case _:
            answer = "never"
    match anything:
        case Payment():
            pass
    match size:
        case int():
            late = "number"
    match n:
        case str(start, end):
            pass
    match n:
        case {"a": 1}:
            pass
    match d:
        case {1: 1}:
            pass
    match (n, 1):
        case (a, b, c):
            pass
    caught = "before"
    match order.id:
        case caught if caught == "x":
            pass
        case "b":
            answer = caught
    try:
        charge(order.id, 5)
    except CardDeclined as err:
        match err:
            case CardDeclined(args=args):
                pass
    return late
