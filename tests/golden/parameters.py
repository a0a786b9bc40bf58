# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def first(order: Order, payload) -> None:
    pass


@workflow
def second(order: Order, *rest: str, **more: int) -> None:
    pass


@workflow
def nameless(n: int, /) -> None:
    pass


@workflow
async def third(order: Order) -> None:
    pass


def make():
    @workflow
    def inner(n: int) -> int:
        return n

    return inner


fourth = make()
