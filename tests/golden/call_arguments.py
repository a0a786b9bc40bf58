# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from pydantic import SecretStr
from typing_extensions import TypedDict

from holdfast import (compensating, each, parallel, task, workflow)
from tests.golden.shop import Order, charge, gather, notify, refund, vat


@workflow
def flow(order: Order, n: int) -> None:
    charge(order.id)
    charge(order.id, 5, 6)
    notify(*["a", "b"])
    gather("a", "b")
    each(order.lines, lambda line: notify("a", line.sku), concurrency=n)
    each(order.lines, lambda: notify("a", "b"))
    each(order.lines, vat)
    parallel()
    with compensating() as undo:
        undo(vat, 5)
        undo(refund)
    charge.options(timeout=n)(order.id, 5)


class Bill(TypedDict):
    order_id: str
    cents: int


@task
def sign(text: str, token: SecretStr) -> None: ...


@workflow
def spread(bill: Bill, order: Order, counts: dict[str, int], texts: dict[str, str]) -> None:
    charge("a", **bill)
    notify(**bill)
    charge(**order)
    charge(**order.lines)
    refund(**counts)
    sign(**texts)
    charge(**counts, **counts)
    charge(cents=1, **bill)
