# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, notify


@workflow
def flow(order: Order) -> None:
    notify("größe 📦", order.grösse)  # the caret counts characters
    notify(
        order.id,  # several lines
        order.nothing
        .at_all,
    )
