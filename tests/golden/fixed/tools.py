# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from holdfast import choice, each, workflow
from tests.golden.shop import Order, charge, is_valid

TOOLS = choice(charge, is_valid)


class Asked(BaseModel):
    name: str
    arguments: dict[str, Any]


@workflow
def flow(order: Order, call: Asked, name: str, arguments: dict[str, Any]) -> list[Any]:
    x = TOOLS[name](**arguments)
    TOOLS[call.name](**call.arguments)
    return each(order.lines, lambda line: TOOLS[name](**arguments))
