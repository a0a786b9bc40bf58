# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from holdfast import each, task, workflow
from tests.golden.shop import Line, Order


@task
def visit(name: str) -> list[str]: ...


@workflow
def sets(order: Order, names: list[str], known: set[str], n: int) -> int:
    a = set(names)
    for name in sorted(known):
        visit(name)
    seen: set[str] = set()
    seen.update(names)
    same = seen == set(names)
    seen.discard(names[0])
    b = names in [names, sorted(seen)]
    return len(seen)


@workflow
def lists(order: Order, names: list[str], prices: dict[str, int], n: int) -> int:
    rest = list(names)
    rest.insert(0, "x")
    rest.remove("x")
    rest.sort(key=len)
    rest.clear()
    rest.pop(0)
    del rest[0]
    x = visit(rest.pop())
    flags = [n > 1]
    x = len(rest)
    left = visit(f"{x} {rest.pop()}")
    costs = dict(prices)
    pairs = [("a", 1)]
    costs.update({key: value for key, value in pairs})
    costs.pop(str(n))
    costs.setdefault(str(n), 0)
    del costs[str(n)]
    return len(rest)


class Item(TypedDict):
    sku: str
    qty: int


class Priced(Item):
    price: int


@workflow
def typed(n: int, name: str, key: str, data: dict[str, Any]) -> str:
    a = Item(sku=name, qty=n)
    c: Item = {"sku": name, "qty": int(name)}
    d: Item = {"sku": name, "qty": n}
    item = Item(sku=name, qty=n)
    item["qty"] = int(name)
    g = item["qty"]
    h = "{} {}".format(name, n)
    x: str = data["x"]
    i = f"{x}"
    return h
