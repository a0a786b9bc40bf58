# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order, charge, is_valid


@workflow
def flow(order: Order, text: str) -> None:
    xs = [1, 2]
    xs["a"] = 1
    xs[charge(order.id, 1).id] = 4
    d = {"a": {"b": 1}}
    d[1] = {}
    word = text
    word[0] = "x"
    row = [1]
    rows = [row]
    rows[0] += [2]
    xs *= 2
    xs += 5
    xs.extend(text)
    missing[0] = 1
    charge(order.id, row[0])
