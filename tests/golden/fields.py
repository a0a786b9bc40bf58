# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, Outcome, notify


@workflow
def flow(order: Order) -> Outcome:
    notify(order.customer_mail, "b")
    notify(order.id.size, order.model_dump(by_alias=True))
    notify(order.model_copy(update={"coupn": "x"}).id, order.zip)
    return Outcome(order_id=order.id, status="shipped", totl=1.0)
