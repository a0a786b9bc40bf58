# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge, vat


@workflow
def flow(order: Order) -> None:
    try:
        charge(order.id, 5)
    except:
        pass
    try:
        charge(order.id, 5)
    except BaseException:
        pass
    try:
        charge(order.id, 5)
    except vat:
        pass
