# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (pure, workflow)
from tests.golden.shop import Order, charge, notify


@workflow
def flow(order: Order) -> str:
    for line in order.lines:
        try:
            payment = charge(order.id, 5)
        except Exception:
            break
        finally:
            notify("a", "b")
    for line in order.lines:
        try:
            payment = charge(order.id, 5)
        except Exception:
            continue
    try:
        charge(order.id, 5)
    except Exception:
        return "swallowed"
    return "x"


@workflow
def again(order: Order) -> str:
    try:
        payment = charge(order.id, 5)
    except Exception:
        raise
    finally:
        for line in order.lines:
            break
    return "x"


@workflow
def unreachable(order: Order) -> str:
    later = "x"
    try:
        charge(order.id, 5)
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
        if tries is not None:
            return tries + 1
    return 0
