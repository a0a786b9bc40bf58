# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import TypedDict

from holdfast import (again, ask, minutes, publish, send, start, wait_for_event, workflow)
from tests.golden.shop import Order, Payment


class Loose(TypedDict):
    id: str


@workflow
def flow(order: Order, n: int) -> None:
    wait_for_event(f"paid.{n}", Payment, key=order.id)
    wait_for_event("paid", Payment)
    wait_for_event("paid", set[Payment], key=order.id)
    wait_for_event("paid", dict, key=order.id)
    wait_for_event("paid", dict[int, Payment], key=order.id)
    wait_for_event("paid", list[set[Payment]], key=order.id)
    wait_for_event("paid", set[Payment] | None, key=order.id)
    wait_for_event("paid", tuple[int, int], key=order.id)
    wait_for_event("paid", Payment, key=n)
    ask("Sure?", bool, assignee=order.coupon)
    wait_for_event("twice", Payment, key=order.id)
    wait_for_event("twice", list[Payment], key=order.id)
    wait_for_event("same", list[Payment], key=order.id)
    wait_for_event("same", list[Payment], key=order.id)
    publish(f"done {n}", n)
    send(f"done.{n}", n, key=order.id)
    start(order, n)
    start(flow)
    start(flow, order, n, countdown=minutes(5))
    start(flow, order, n, delay=minutes(5), at=n)
    again(order, n)
    wait_for_event("paid?", Payment, key=order.id)
    wait_for_event("loose", Loose, key=order.id)
    wait_for_event("cancelled", None, key=order.id, kept=n > 1)
