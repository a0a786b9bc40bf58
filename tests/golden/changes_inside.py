# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

from holdfast import workflow
from tests.golden.shop import Order


class Point(NamedTuple):
    x: int
    y: int = 0


@workflow
def flow(order: Order, names: list[str], n: int) -> int:
    mine: list[int] = []
    groups: dict[str, list[int]] = {"a": mine}
    seen: list[str] = []
    groups["a"].append(n)
    groups["a"].extend([n])
    for name in names:
        seen.add(name)
    seen.discard("x")
    text = "%s of %d" % (order.id, n)
    other = text % n
    point = Point(x=1, z=2)
    return n > len(mine)
