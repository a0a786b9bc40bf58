# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import (TaskError, workflow)
from tests.golden.shop import charge, notify


class Closed(TaskError): ...


@workflow
def flow(prices: dict[str, int], names: list[str], order_id: str) -> None:
    a = [name for name in names]
    b = list(prices.keys())
    for name in [name.upper() for name in names]:
        notify(name, "x")
    c = list(zip(names, names))
    d = 1.7976931348623157e308
    x = names[0]
    e = f"{x} {charge(order_id, 5).id}"


@workflow
def caught(name: str) -> str:
    try:
        notify(name, "x")
    except Closed as err:
        return str(err)
    return ""


@workflow
def late(sizes: list[int]) -> int:
    found: list[int] = []
    try:
        found.extend([100 // size for size in sizes])
    except ZeroDivisionError:
        return len(found)
    return 0
