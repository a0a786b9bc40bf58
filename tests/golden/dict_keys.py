# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

import json
from enum import Enum, auto
from typing import Any

from holdfast import task, workflow


class Stage(Enum):
    NEW = "new"
    DONE = "done"


class Step(Enum):
    FIRST = auto()
    LAST = auto()


@task
def settle(value: int) -> int: ...


BY_STAGE = {Stage.NEW: settle}
BY_NUMBER = {1: settle}


@workflow
def flow(counts: dict[int, int], n: int, name: str, flag: bool, stages: dict[Stage, int]) -> Any:
    found = {n: 1, name: 2}
    flags = {flag: 1}
    steps = {Step.FIRST: 1}
    halves = {number / 2: number for number in counts}
    one = counts[name]
    two = counts.get(flag)
    three = stages[name]
    four = name in counts
    counts[name] = 1
    counts.pop(name, 0)
    del counts[name]
    counts.update({name: 1})
    more = counts | {name: 1}
    whole = {**counts, **{name: 1}}
    named = dict(counts, tea=1)
    done = BY_STAGE[name](n)
    last = BY_NUMBER[name](n)
    text: dict[str, int] = counts
    known: dict[Stage, int] = {"new": 1}
    written = json.dumps(counts, sort_keys=True)
    return [one, two, three, four, found, flags, steps, halves, more, whole, named, done, last]


@workflow
def numbers(given: Any, rows: dict[str, Any]) -> Any:
    counts: dict[int, int] = given["counts"]
    totals: dict[int, int] = rows
    return sum(counts.values()) + sum(totals.values())
