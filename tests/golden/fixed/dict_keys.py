# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import json
from enum import Enum, auto
from typing import Any

from holdfast import pure, task, workflow


class Stage(Enum):
    NEW = "new"
    DONE = "done"


class Step(Enum):
    FIRST = auto()
    LAST = auto()


@task
def settle(value: int) -> int: ...


@pure
def dumps_of(counts: dict[int, int]) -> str:
    return json.dumps(counts, sort_keys=True)


@pure
def value_of(counts: dict[int, int], name: str) -> dict[int, int]:
    return counts | {int(name): 1}


BY_STAGE = {Stage.NEW: settle}
BY_NUMBER = {1: settle}


@workflow
def flow(counts: dict[int, int], n: int, name: str, flag: bool, stages: dict[Stage, int]) -> Any:
    found = {n: 1, int(name): 2}
    flags = {int(flag): 1}
    steps = {Step.FIRST.value: 1}
    halves = {int(number / 2): number for number in counts}
    one = counts[int(name)]
    two = counts.get(int(flag))
    three = stages[Stage(name)]
    four = int(name) in counts
    counts[int(name)] = 1
    counts.pop(int(name), 0)
    del counts[int(name)]
    pairs = {name: 1}
    counts.update({int(key): value for key, value in pairs.items()})
    more = value_of(counts, name)
    some, other = counts, {int(name): 1}
    whole = {**some, **other}
    named = {**some, **other}
    done = BY_STAGE[Stage(name)](n)
    last = BY_NUMBER[int(name)](n)
    text: dict[int, int] = some
    known: dict[str, int] = {"new": 1}
    written = dumps_of(some)
    return [one, two, three, four, found, flags, steps, halves, more, whole, named, done, last]


@workflow
def numbers(given: Any, rows: dict[str, Any]) -> Any:
    counts = {int(key): one for key, one in given["counts"].items()}
    totals = {int(key): one for key, one in rows.items()}
    return sum(counts.values()) + sum(totals.values())
