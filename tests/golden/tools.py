# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import choice, workflow
from tests.golden.shop import Order, charge, is_valid

TOOLS = choice(charge, is_valid)


@workflow
def flow(order: Order, name: str, arguments: dict[str, Any]) -> list[Any]:
    TOOLS[5](**arguments)
    TOOLS[name](order.id, 5)
    return [TOOLS[name](**arguments) for line in order.lines]
