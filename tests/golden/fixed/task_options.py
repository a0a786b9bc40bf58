# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (Retry, Worker, each, minutes, parallel, seconds, task, workflow)
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


@task(runs_on=Worker("hosts"), timeout=minutes(30))
def charge_on_host(order_id: str, cents: int) -> None: ...


@workflow
def routed(order: Order, host: str) -> None:
    charge_on_host.options(runs_on=Worker(host))(order.id, 5)


@task(runs_on=Worker("hosts"), timeout=minutes(30))
def shrink(path: str) -> str:
    return path


@workflow
def on_hosts(paths: list[str], host: str) -> list[str]:
    shrink.options(runs_on=Worker(host))("a")
    x = shrink("a")
    shrink.options(runs_on=Worker(host))(x)
    return each(paths, lambda item: shrink.options(runs_on=Worker(host))(item))


@workflow
def waits(n: int) -> int:
    return part(n)
