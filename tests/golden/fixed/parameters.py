# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import each, parallel, seconds, sleep, timeout, workflow
from tests.golden.shop import Order, charge


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
    charge(order.id, 5)
    sleep(seconds(5))
    parallel(lambda: charge(order.id, 1), lambda: charge(order.id, 2))
    with timeout(seconds(60)):
        charge(order.id, 3)
    each((1, 2), lambda n: charge(order.id, n))


@workflow
def inner(n: int) -> int:
    return n
