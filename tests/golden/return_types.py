# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import charge


@workflow
def flow(n: int) -> str:
    return n


@workflow
def paid(order_id: str) -> list[str]:
    return charge(order_id, 5)
