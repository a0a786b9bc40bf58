# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from enum import Enum, StrEnum

from holdfast import (pure, workflow)
from tests.golden.shop import Colour


class Status(StrEnum):
    OPEN = "open"


class Size(Enum):
    SMALL = "s"


@pure
def label(colour: Colour) -> str:
    return str(colour)


@workflow
def flow(colour: Colour, status: Status, text: str, size: Size) -> None:
    c = colour == Colour.RED
    d = colour.value < colour.value
    f = [Colour.RED]
    g = size == Size.SMALL
    h = label(colour)
    i = status == text
