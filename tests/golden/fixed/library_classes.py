# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import datetime, timedelta

from holdfast import pure, task, workflow
from tests.golden.shop import CardDeclined


@task
def now() -> datetime: ...


@task
def charge(order_id: str) -> str: ...


@workflow
def grouped(words: list[str]) -> None:
    groups: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for word in words:
        groups.setdefault(word[0], []).append(word)
        counts[word] = counts.get(word, 0) + 1
    waiting: list[str] = []
    for word in words:
        waiting.append(word)
    first = waiting.pop(0)


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
