# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from holdfast import task, workflow
from tests.golden.shop import Line, Order


@task
def visit(name: str) -> list[str]: ...


@workflow
def sets(order: Order, names: list[str], known: set[str], n: int) -> int:
    a = set(names, names)
    for name in known:
        visit(name)
    seen: set[str] = set()
    seen.add(n)
    seen.add(order.lines[0])
    seen.discard(n)
    seen.update([n])
    seen.update(names, names)
    same = seen == names
    seen.discard(names)
    b = names in seen
    return len(seen)


@workflow
def lists(order: Order, names: list[str], prices: dict[str, int], n: int) -> int:
    rest = list(names)
    rest.insert("x")
    rest.remove(n)
    rest.sort(len)
    rest.clear(n)
    rest.pop("a")
    del rest["a"]
    more = [visit(rest.pop()) for name in names]
    flags = [n > 1]
    flags.remove(n)
    left = visit(f"{len(rest)} {rest.pop()}")
    costs = dict(prices)
    costs.update(names)
    costs.pop(n)
    costs.setdefault(n, 0)
    del costs[n]
    return len(rest)


class Item(TypedDict):
    sku: str
    qty: int


@workflow
def typed(n: int, name: str, key: str, data: dict[str, Any]) -> str:
    a = Item(name)
    b = Item(sku=name)
    c: Item = {"sku": name, "qty": name}
    d: Item = {"sku": name, "qty": n, "price": 3}
    e: Item = {key: name, "qty": n}
    f = {**Item(sku=name, qty=n)}
    item = Item(sku=name, qty=n)
    item["qty"] = name
    item["price"] = n
    item["qtyy"] = 2
    g = item["qtty"]
    return g
