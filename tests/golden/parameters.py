# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import asyncio

from holdfast import parallel, workflow
from tests.golden.shop import Order, charge


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
    await charge(order.id, 5)
    asyncio.sleep(5)
    await asyncio.gather(charge(order.id, 1), charge(order.id, 2))
    await asyncio.wait_for(charge(order.id, 3), 60)
    asyncio.gather(*[charge(order.id, n) for n in (1, 2)])
    parallel(*[lambda: charge(order.id, n) for n in (1, 2)])


def make():
    @workflow
    def inner(n: int) -> int:
        return n

    return inner


fourth = make()
