# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order) -> str:
    import json
    assert order.lines
    for line in order.lines:
        del line
    else:
        pass
    match order.coupon:
        case None:
            return json.dumps("none")
    class Inner:
        pass
    global other
    return "x"
