# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order) -> str:
    import json
    for line in order.lines:
        del line.sku
    try:
        pass
    except* ValueError:
        pass
    async def nothing(): ...
    class Inner:
        pass
    global other
    other = 1
    return "x"
