# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (
    Retry, Worker, each, minutes, parallel, seconds, start, task, workflow
)
from tests.golden.shop import Order, charge


@workflow
def part(n: int) -> int:
    return n


@workflow
def flow(n: int) -> None:
    charge.options(timeout=n)("a", 1)
    charge.options(heartbeat=minutes(n))("a", 1)
    charge.options(idempotent=True)("a", 1)
    charge.options(minutes(5))("a", 1)
    charge.options(label=f"charge {n}")("a", 1)
    charge.options(retry=Retry(max_attempts=n))("a", 1)
    charge.options(heartbeat=seconds(0.5))("a", 1)
    charge.options(timeout=minutes(15))("a", 1)
    charge.options(timeout=minutes(5))
    part.options(heartbeat=minutes(1))(n)
    part.options(timeout=seconds(0.5))(n)
    part.options(retry=Retry())([1, 2][n])
    parallel(charge.options(timeout=minutes(5)), lambda: 1)


@workflow
def routed(order: Order, host: str) -> None:
    charge.options(runs_on=Worker(host))(order.id, 5)


@task(runs_on=Worker("hosts"), timeout=minutes(30))
def shrink(path: str) -> str:
    return path


@workflow
def on_hosts(paths: list[str], host: str) -> list[str]:
    shrink.options(runs_on=host)("a")
    shrink.options(runs_on=Worker(host))(shrink("a"))
    return each(paths, shrink.options(runs_on=Worker(host)))


@workflow
def waits(n: int) -> int:
    return start(part, n).result()
