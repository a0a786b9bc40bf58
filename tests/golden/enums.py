# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from enum import Enum, StrEnum

from holdfast import workflow
from tests.golden.shop import Colour


class Status(StrEnum):
    OPEN = "open"


class Size(Enum):
    SMALL = ("s", 1)


@workflow
def flow(colour: Colour, status: Status, text: str, size: Size) -> None:
    a = Size(text)
    c = colour == text
    d = colour < colour
    e = colour.label
    g = size == Size.SMALL
    i = status is text
    j = text.find(colour)
