# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order) -> list[str]:
    """A docstring is no statement."""
    ...
    found: list[str] = []
    found.append(order.id)
    x = order.id
    x = order.id == "x"
    x = len(order.lines)
    return found
