# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge, notify


@workflow
def flow(order: Order) -> str:
    for line in order.lines:
        try:
            payment = charge(order.id, 5)
        finally:
            if line.qty:
                break
            continue
    try:
        charge(order.id, 5)
    finally:
        return "swallowed"


@workflow
def again(order: Order) -> str:
    try:
        payment = charge(order.id, 5)
    except Exception:
        raise
    finally:
        notify("a", payment.id)
        for line in order.lines:
            break
        raise
    return "x"


@workflow
def unreachable(order: Order) -> str:
    try:
        return order.id
    except Exception:
        return "x"
    else:
        notify("a", "b")
    finally:
        notify("a", later)
    later = "x"
    return later


@workflow
def widened(order: Order) -> int:
    tries: int | None = 1
    tries = 1
    try:
        try:
            charge(order.id, 5)
        finally:
            tries = None
    except Exception:
        return tries + 1
    return 0
