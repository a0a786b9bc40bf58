# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge, is_valid


@workflow
def flow(order: Order, text: str, missing: list[int]) -> None:
    xs = [1, 2]
    xs[0] = 1
    x = charge(order.id, 1)
    counts: dict[str, int] = {}
    counts[x.id] = 4
    d = {"a": {"b": 1}}
    d[str(1)] = {}
    word = "x" + text[1:]
    row = [1]
    rows = [row]
    rows[0] = rows[0] + [2]
    xs = xs * 2
    xs.append(5)
    xs.append(len(text))
    missing = list(missing)
    missing[0] = 1
