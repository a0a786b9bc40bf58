# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Any

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order, days: dict[str, date], rows: list[dict[str, Any]]) -> None:
    a = asdict(order)
    b = Order.model_validate(days)
    c = order.model_dump(by_alias=True)
