# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (Retry, Worker, minutes, parallel, seconds, task, workflow)
from tests.golden.shop import Order, charge


@task(timeout=seconds(90))
def refund(order_id: str) -> None: ...


@workflow
def part(n: int) -> int:
    return n


@workflow
def flow(n: int) -> None:
    charge.options(timeout=minutes(5), retry=Retry(max_attempts=3))("a", 1)
    charge.options(label="first part")("a", 1)
    refund("a")
    charge("a", 1)
    part.options(timeout=minutes(5), retry=Retry(max_attempts=3))(n)
    part.options(timeout=seconds(90))(n)
    numbers = [1, 2]
    first = numbers[n]  # on a line of its own, and then the call with first
    part.options(retry=Retry())(first)
    parallel(lambda: charge.options(timeout=minutes(5))("a", 1), lambda: 1)


@task(runs_on=Worker("a"))
def charge_on_a(order_id: str, cents: int) -> None: ...


@task(runs_on=Worker("b"))
def charge_on_b(order_id: str, cents: int) -> None: ...


@workflow
def routed(order: Order, host: str) -> None:
    if host == "a":
        charge_on_a(order.id, 5)
    else:
        charge_on_b(order.id, 5)


@workflow
def waits(n: int) -> int:
    return part(n)
