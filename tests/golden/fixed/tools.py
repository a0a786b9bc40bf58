# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from holdfast import choice, each, minutes, task, workflow
from tests.golden.shop import Order, charge, is_valid

TOOLS = choice(charge, is_valid)


@task(timeout=minutes(14))
def slow(n: int) -> int:
    return n


SLOW = choice(slow)


class Asked(BaseModel):
    name: str
    arguments: dict[str, Any]


@workflow
def flow(order: Order, call: Asked, name: str, arguments: dict[str, Any]) -> list[Any]:
    SLOW["slow"](n=5)
    x = TOOLS[name](**arguments)
    if name in TOOLS:
        x = TOOLS[name](order_id=order.id, cents=5)
    TOOLS[call.name](**call.arguments)
    TOOLS[name](**arguments, extra=1)
    return each(order.lines, lambda line: TOOLS[name](**arguments))


@workflow
def titled(name: str, n: int) -> int:
    x = name.title()
    return SLOW[x](n=SLOW["slow"](n=n))
