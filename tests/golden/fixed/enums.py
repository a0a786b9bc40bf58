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
def label_of(colour: Colour) -> str:
    return colour.label


@workflow
def flow(colour: Colour, status: Status, text: str, size: Size) -> None:
    c = colour == Colour.RED
    d = colour.value < colour.value
    f = [one for one in Colour]
    g = size == Size.SMALL
    a = Status(text)
    b = Status[text]
    h = str(colour)
    i = status == text
    j = text.find(colour.value)
