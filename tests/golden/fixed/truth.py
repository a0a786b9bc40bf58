# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from decimal import Decimal

from holdfast import pure, workflow
from tests.golden.shop import anything


@pure
def is_zero(price: Decimal) -> bool:
    return not price


@workflow
def flow(extra: dict[str, Decimal], price: Decimal, raw: bytes | None) -> str:
    if is_zero(price):
        return "x"
    if anything():
        return "y"
    if raw is not None:
        return "v"
    return "z" if len(extra) > 0 else "w"
