# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import json

from holdfast import workflow
from tests.golden.shop import Order, charge


class Inner:
    pass


@workflow
def flow(order: Order, other: str) -> str:
    for line in order.lines:
        line = order.lines[0]
    try:
        charge(order.id, 5)
    except ValueError:
        pass

    def nothing(): ...

    return "x"
