# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from holdfast import pure, workflow
from pydantic import BaseModel, TypeAdapter
from tests.golden.shop import Colour


class Command(BaseModel):
    action: str


@dataclass
class Point:
    x: int


def named(colour: Colour) -> str:
    return colour.name


@pure
def pair_of(value: Any) -> tuple[str, int]:
    return (str(value[0]), int(value[1]))


@workflow
def flow(d: dict[str, Any], rows: list[Any]) -> str:
    colour: Colour = Colour(d["colour"])
    command: Command = Command.model_validate(d["command"])
    commands: list[Command] = TypeAdapter(list[Command]).validate_python(d["commands"])
    point: Point = TypeAdapter(Point).validate_python(d["point"])
    when: datetime = datetime.fromisoformat(d["when"])
    day: date = date.fromisoformat(d["day"])
    price: Decimal = Decimal(d["price"])
    wait: timedelta = timedelta(seconds=int(d["wait"]))
    colours: list[Colour] = [Colour(one) for one in rows]
    prices: dict[str, Decimal] = {key: Decimal(one) for key, one in d["prices"].items()}
    maybe: Colour | None = None if d["maybe"] is None else Colour(d["maybe"])
    pair: tuple[str, int] = pair_of(d["pair"])
    return named(Colour(d["colour"]))
