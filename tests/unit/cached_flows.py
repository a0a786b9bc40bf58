"""Workflows whose tasks have a cache."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from holdfast import Limit, Retry, days, hours, sleep, task, workflow

CALLS: list[str] = []


class Quote(BaseModel):
    sku: str
    cents: int
    text: str = ""


class UnpricedError(Exception):
    pass


@task(cache=days(1), retry=Retry(max_attempts=2, interval=timedelta(seconds=1)))
def price(sku: str, qty: int = 1) -> Quote:
    CALLS.append(f"{sku} {qty}")
    if sku == "unknown" or (sku == "flaky" and CALLS.count("flaky 1") == 1):
        raise UnpricedError(sku)
    return Quote(sku=sku, cents=100 * qty, text="x" * 400_000 if sku == "large" else "")


@task
def plain_price(sku: str, qty: int = 1) -> Quote:
    return Quote(sku=sku, cents=100 * qty)


@task(cache=days(1), limits=[Limit("quotes", concurrency=1)])
def slow_price(sku: str) -> int:
    CALLS.append(f"slow {sku}")
    return 5


@workflow
def quoted(sku: str) -> int:
    return price(sku).cents


@workflow
def quoted_other(sku: str) -> int:
    first_price = price(sku)
    return price(sku, 2).cents + first_price.cents


@workflow
def plain(sku: str) -> int:
    return plain_price(sku).cents


@workflow
def twice(sku: str) -> int:
    total = price(sku).cents
    sleep(hours(23))
    total += price(sku).cents
    sleep(hours(2))
    return total + price(sku).cents


@workflow
def limited(sku: str) -> int:
    return slow_price(sku)


@task(cache=days(1), cache_key=("query",))
def search(query: str, request: str) -> str:
    CALLS.append(f"{query} {request}")
    return f"{query}: 3 hits"


@workflow
def searched(query: str, request: str) -> str:
    return search(query, request)


@task(cache=days(1))
def weigh(kilos: float, label: object) -> float:
    CALLS.append(f"{kilos} {label}")
    return kilos


@workflow
def weighed(kilos: float, label: Any) -> float:
    return weigh(kilos, label)
