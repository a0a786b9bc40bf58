# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from holdfast import (pure, workflow)
from tests.golden.shop import Order


@pure
def found(d: dict[str, int], n: int) -> int | None:
    return d.get(str(n))


@pure
def merged(d: dict[str, int], names: list[str]) -> dict[str, int]:
    return d | dict.fromkeys(names, 0)


@pure
def get_of(d: dict[str, int]) -> Any:
    return d.get("x", d["y"])


@pure
def index_of(names: list[str], n: int) -> Any:
    return names.index(n, 1)


@pure
def enumerate_of(names: list[str], n: int) -> Any:
    return enumerate(names, start=n)


@workflow
def flow(order: Order, d: dict[str, int], n: int, names: list[str], row: tuple[int, ...]) -> None:
    get_of(d)
    index_of(names, n)
    enumerate_of(names, n)
    amounts = [1]
    a = dict(zip(names, amounts))
    b = {**d, **d}
    b = {**d, "x": 1}
    c = found(d, n)
    key = "x"
    e = {name: one for name, one in d.items() if name != key}
    f = d.get("x", 1)
    g = merged(d, names)
    h = {n: 1 for n in names if n in d}
    i = {int(len(name) / 2): name for name in names}
    names = list(names)
    names.sort()
    o = [*order.lines]
    p = [*names, "x"]
    for place, name in enumerate(names, 1):
        pass
    r = names * round(1.5)
    t = list(zip(names, amounts))
    s = [*zip(names, row, strict=True)]
    t = [pair for pair in zip(names, amounts)]
    u = list(range(n))
    v = list(row) + [1]
    x = list(row).copy()
    w = [*row] == [1]
    row = [*row, 1]
