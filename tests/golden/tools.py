# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import choice, hours, task, workflow
from tests.golden.shop import Order, charge, is_valid

TOOLS = choice(charge, is_valid)


@task(timeout=hours(2))
def slow(n: int) -> int:
    return n


SLOW = choice(slow)


@workflow
def flow(order: Order, name: str, arguments: dict[str, Any]) -> list[Any]:
    SLOW["slow"](n=5)
    TOOLS[5](**arguments)
    tool = TOOLS.get(name)
    tool = TOOLS[name]
    TOOLS[name](order.id, 5)
    TOOLS[name](**arguments, **arguments)
    TOOLS[name](**name, cents=1)
    return sorted(order.lines, key=lambda line: TOOLS[name](**arguments))


@workflow
def titled(name: str, n: int) -> int:
    return SLOW[name.title()](n=SLOW["slow"](n=n))
