# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Any

from holdfast import (pure, workflow)
from tests.golden.shop import Order


@pure
def model_validate_of(days: dict[str, date]) -> Order:
    return Order.model_validate(days)


@workflow
def flow(order: Order, days: dict[str, date], rows: list[dict[str, Any]]) -> None:
    a = order.model_dump()
    b = model_validate_of(days)
    c = order
