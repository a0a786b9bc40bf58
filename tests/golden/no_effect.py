# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order) -> None:
    """A docstring is no statement."""
    ...
    yield order
    order.id
    order.id == "x"
    len(order.lines)
