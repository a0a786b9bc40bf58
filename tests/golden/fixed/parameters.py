# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def first(order: Order, payload: str) -> None:
    pass


@workflow
def second(order: Order, rest: list[str], more: list[str]) -> None:
    pass


@workflow
def nameless(n: int) -> None:
    pass


@workflow
def third(order: Order) -> None:
    pass


@workflow
def inner(n: int) -> int:
    return n
