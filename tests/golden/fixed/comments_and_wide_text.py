# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order) -> None:
    notify("größe 📦", order.id)
    notify(
        order.id,  # several lines
        order
        .customer_email,
    )
