# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import workflow
from tests.golden.shop import Order


@workflow
def flow(order: Order, d: dict[str, int], n: int, names: list[str], row: tuple[int, ...]) -> None:
    a = dict(names)
    b = dict(d, **d)
    c = d.get(n)
    e = d.pop("x")
    f = d.setdefault("x", 1)
    g = d | names
    h = {n: 1 for n in names if n in order}
    i = {len(name) / 2: name for name in names}
    j = d.get("x", d["y"])
    k = names.index(n, 1)
    m = names.sort()
    o = [*order]
    p = (*names, 1)
    q = enumerate(names, start=n)
    r = names * 1.5
    t = list(zip(names))
    s = [*zip(names, row, strict=n == 1)]
    u = range(0, n, n)
    v = row + [1]
    w = row == [1]
    x = row.copy()
    row.append(1)
