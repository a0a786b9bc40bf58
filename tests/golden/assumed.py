# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from holdfast import workflow
from pydantic import BaseModel
from tests.golden.shop import Colour


class Command(BaseModel):
    action: str


@dataclass
class Point:
    x: int


def named(colour: Colour) -> str:
    return colour.name


@workflow
def flow(d: dict[str, Any], rows: list[Any]) -> str:
    colour: Colour = d["colour"]
    command: Command = d["command"]
    commands: list[Command] = d["commands"]
    point: Point = d["point"]
    when: datetime = d["when"]
    day: date = d["day"]
    price: Decimal = d["price"]
    wait: timedelta = d["wait"]
    colours: list[Colour] = rows
    prices: dict[str, Decimal] = d["prices"]
    maybe: Colour | None = d["maybe"]
    pair: tuple[str, int] = d["pair"]
    return named(d["colour"])
