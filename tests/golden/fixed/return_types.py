# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Payment, charge


@workflow
def flow(n: int) -> int:
    return n


@workflow
def paid(order_id: str) -> Payment:
    return charge(order_id, 5)
