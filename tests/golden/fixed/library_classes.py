# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import re
from collections import Counter
from functools import reduce
from datetime import datetime, timedelta

from holdfast import pure, task, workflow
from tests.golden.shop import CardDeclined


@task
def now() -> datetime: ...


@task
def charge(order_id: str) -> str: ...


@workflow
def grouped(words: list[str]) -> str:
    groups: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for word in words:
        groups.setdefault(word[0], []).append(word)
        counts[word] = counts.get(word, 0) + 1
    waiting: list[str] = []
    for word in words:
        waiting.append(word)
    first = waiting.pop(0)
    numbers = {key: 1 for key in words}
    lengths = Counter(word for word in words)
    lengths.update({str(key): n for key, n in {len(word): 1 for word in words}.items()})
    halves = Counter([int(one) for one in [len(word) / 2 for word in words]])
    return ", ".join(f"{word} {count}" for word, count in counts.items())


@workflow
def matched(n: int) -> str:
    found = re.match("(a)", str(n))
    values = [n]
    total = reduce(lambda total, one: total + one, values, 0)
    groups: dict[int, list[int]] = {}
    for one in values:
        key = one
        groups.setdefault(key, []).append(one)
    return found.group(1) if found else ""


@workflow
def tried(order_id: str) -> str:
    try:
        return charge(order_id)
    except (CardDeclined, ConnectionError) as err:
        return type(err).__name__


@pure
def value_of(x: datetime, closes: datetime) -> timedelta:
    return closes - x


@workflow
def timed(closes: datetime) -> None:
    x = now()
    left = value_of(x, closes)
