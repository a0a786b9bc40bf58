# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from decimal import Decimal

from holdfast import workflow
from tests.golden.shop import anything


@workflow
def flow(extra: dict[str, Decimal], price: Decimal, raw: bytes) -> str:
    if price:
        return "x"
    if anything():
        return "y"
    if not raw:
        return "v"
    return "z" if extra.get("y") else "w"
