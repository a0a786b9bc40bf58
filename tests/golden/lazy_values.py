# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (TaskError, workflow)
from tests.golden.shop import charge, notify


class Closed(TaskError): ...


@workflow
def flow(prices: dict[str, int], names: list[str], order_id: str) -> None:
    a = (name for name in names)
    b = prices.keys()
    for name in (name.upper() for name in names):
        notify(name, "x")
    c = zip(names, names)
    d = 1e400
    e = f"{names[0]} {charge(order_id, 5).id}"


@workflow
def caught(name: str) -> str:
    try:
        notify(name, "x")
    except Closed as err:
        return err
    return ""


@workflow
def late(sizes: list[int]) -> int:
    found: list[int] = []
    try:
        found.extend(100 // size for size in sizes)
    except ZeroDivisionError:
        return len(found)
    return 0
