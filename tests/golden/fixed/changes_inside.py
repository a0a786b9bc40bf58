# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import copy
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
    groups = copy.deepcopy(groups)
    groups["a"].append(n)
    groups["a"].extend([n])
    for name in names:
        seen.append(name)
    other = "x"
    seen = [one for one in seen if one != other]
    text = f"{order.id} of {n}"
    value = n
    more = f"{value}"
    point = Point(x=1, y=2)
    return int(n > len(mine))
