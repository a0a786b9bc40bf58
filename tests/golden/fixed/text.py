# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (pure, workflow)
from tests.golden.shop import Colour, Order, notify


@pure
def shown(rate: float) -> str:
    return f"{rate}"


@pure
def text_of(rate: float) -> str:
    return f"rate {rate}"


@pure
def text_of_2(rate: float) -> str:
    return f"{rate:.2f}"


@pure
def text_of_3(colour: Colour) -> str:
    return f"{colour!r}"


@workflow
def flow(order: Order, rate: float, colour: Colour, cents: int) -> None:
    text_of(rate)
    text_of_2(rate)
    text_of_3(colour)
    notify(order.id, shown(rate))
    notify(order.id, f"{cents // 100}.{cents % 100:02d}")
    notify(order.id, colour.value)
    notify(order.id, order.id)
