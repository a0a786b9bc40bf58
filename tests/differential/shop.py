"""The material of generated programs: models, enums, errors, tasks, child workflows."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from functools import reduce
from operator import attrgetter, itemgetter
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, TypeAdapter

from holdfast import (
    BlockTimeout,
    BranchCancelled,
    CompensationFailed,
    Retry,
    TaskError,
    WaitTimeout,
    again,
    ask,
    choice,
    compensating,
    dag,
    days,
    each,
    first,
    from_input,
    from_step,
    hours,
    minutes,
    parallel,
    publish,
    pure,
    receive,
    role,
    seconds,
    send,
    shielded,
    sleep,
    sleep_until,
    start,
    step,
    stop,
    task,
    timeout,
    wait_for_event,
    workflow,
)

__all__ = [
    "CHILDREN",
    "LETTER",
    "TOOLS",
    "UTC",
    "UUID",
    "Answer",
    "Any",
    "BaseModel",
    "BlockTimeout",
    "BranchCancelled",
    "Card",
    "Coded",
    "Colour",
    "CompensationFailed",
    "Counter",
    "Decimal",
    "Level",
    "Line",
    "Literal",
    "Marked",
    "Order",
    "Other",
    "Problem",
    "Retry",
    "Size",
    "Small",
    "TaskError",
    "Transfer",
    "TypeAdapter",
    "WaitTimeout",
    "again",
    "ask",
    "attrgetter",
    "beating",
    "bounded",
    "careful",
    "choice",
    "compensating",
    "dag",
    "date",
    "datetime",
    "days",
    "defaultdict",
    "doubled",
    "each",
    "echo",
    "first",
    "flaky",
    "from_input",
    "from_step",
    "graph_part",
    "hashlib",
    "hours",
    "itemgetter",
    "itertools",
    "label_of",
    "labelled",
    "late_part",
    "minutes",
    "name_of",
    "order_of",
    "parallel",
    "part",
    "patience",
    "picky_part",
    "publish",
    "pure",
    "re",
    "receive",
    "reduce",
    "role",
    "say",
    "seconds",
    "send",
    "settled",
    "shielded",
    "sleep",
    "sleep_until",
    "slow_part",
    "spent",
    "spread",
    "start",
    "step",
    "stop",
    "sum_of",
    "summed",
    "task",
    "ticking",
    "tidy_part",
    "time",
    "timedelta",
    "timeout",
    "total_of",
    "undo_it",
    "upper",
    "wait_for_event",
    "workflow",
]

LETTER = re.compile("(?P<q>[a-z])")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Size(StrEnum):
    S = "s"
    L = "l"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Line(BaseModel):
    sku: str
    qty: int = 1
    tags: list[str] = []

    @classmethod
    def of(cls, sku: str, *tags: str, **sizes: int) -> Line:
        return cls(sku=sku, qty=sum(sizes.values()), tags=list(tags))

    @classmethod
    def first_of(cls, lines: list[Line]) -> Line:
        for line in lines:
            if line.qty > 1:
                return line
        return cls.of("none")


class Order(BaseModel):
    id: UUID
    price: Decimal
    placed: datetime
    due: date | None = None
    grace: timedelta = timedelta(hours=1)
    colour: Colour = Colour.RED
    level: Level = Level.LOW
    kind: Literal["a", "b"] = "a"
    lines: list[Line] = []
    notes: dict[str, str] = {}
    coupon: str | None = None


class Card(BaseModel):
    kind: Literal["card"] = "card"
    digits: str


class Transfer(BaseModel):
    kind: Literal["transfer"] = "transfer"
    iban: str
    cents: int = 0


class Answer(BaseModel):
    yes: bool
    note: str = ""


class Problem(TaskError): ...  # noqa: N818


class Small(Problem): ...


class Other(TaskError): ...  # noqa: N818


class Coded(Problem):
    """Has fields: a text, a model, a field that is not always there."""

    code: str
    line: Line
    sizes: list[int]

    def __init__(self, text: str) -> None:
        super().__init__(f'"{text}" {{ä}}')
        self.code = text
        self.line = Line(sku=text, qty=len(text))
        if not text.endswith("3"):
            self.sizes = [len(text)]


class Marked(Problem):
    """Has fields with defaults, and is raised by workflows, too."""

    level: int = 2
    place: str | None = None


# The outcomes of tasks are drawn: their bodies never run.


@task
def echo(value: int) -> int:
    return value


@task
def spent(sku: str, qty: int = 2, tags: list[str] | None = None, a: int = 0) -> int:
    return qty + len(sku) + len(tags or ()) + a


@task(timeout=minutes(10))
def say(text: str) -> None: ...


@task(retry=Retry(max_attempts=3, on=(Small, RuntimeError), max_delay=seconds(5)))
def flaky(value: int) -> int:
    return value


@task(retry=Retry(max_attempts=2, interval=seconds(30), jitter=False), timeout=minutes(1))
def careful(name: str, *, loud: bool = False) -> str:
    return name


@task
def order_of(number: int) -> Order:
    raise NotImplementedError


@task
def name_of(order: Order) -> str | None:
    return order.coupon


@task(heartbeat=seconds(30), idempotent=True, retry=Retry(max_attempts=2, on=(Problem,)))
def beating(value: int) -> int:
    return value


TOOLS = choice(echo, flaky, beating)


@task
def patience(wanted: timedelta) -> timedelta:
    return wanted


@task
def sum_of(values: list[int]) -> int:
    return sum(values)


@task
def undo_it(number: int) -> None: ...


@pure
def upper(text: str) -> str:
    return text.upper()


@pure
def total_of(lines: list[Line], extra: int = 0) -> int:
    return sum(line.qty for line in lines) + extra


@workflow
def part(number: int, name: str = "part") -> str:
    with compensating() as undo:
        undo(undo_it, number)
        got = echo(number)
        say(name)
    return f"{name}{got}"


@workflow(timeout=hours(2))
def slow_part(lines: list[Line]) -> int:
    done = 0
    for line in lines:
        try:
            done += flaky(line.qty)
        finally:
            undo_it(done)
        sleep(minutes(20))
    return done


@workflow
def picky_part(number: int) -> int:
    found = echo(number)
    if found % 2 == 1:
        raise Small(f"odd: {found}")
    with compensating() as undo:
        undo(undo_it, found)
        return [1, 2, 3][echo(found)]


@workflow(timeout=minutes(1))
def late_part(wanted: timedelta) -> int:
    done = 0
    with compensating(on_undo_failure="stop") as undo:
        undo(undo_it, 1)
        while patience(wanted) > seconds(1):
            undo(undo_it, done)
            done += beating(done)
            if done > 3:
                break
    return done


def label_of(line: Line, least: int = 2) -> str:
    """A helper of names, `if` and `return`."""
    name = line.sku + line.sku
    if line.qty > least:
        return name
    elif line.qty == 0:
        return "none"
    return f"{line.sku} {line.qty}"


def bounded(number: int) -> int:
    return min(max(number, 0), 9) if number != 3 else 4


def summed(*numbers: int, scale: int = 1, **more: int) -> int:
    return sum(numbers) * scale + len(more)


def spread(first: int, *numbers: int) -> int:
    """A helper with a loop over its arguments."""
    for number in numbers:
        first = number - first
    return first + len(numbers)


def ticking(number: int) -> int:
    """A helper that only another branch ends."""
    while True:
        sleep(hours(5))
        say(f"tick {number}")


def doubled(items: list[int]) -> list[int]:
    """A helper that changes a list of its own."""
    found: list[int] = []
    for item in items:
        if item > 100:
            continue
        found.append(item * 2)
    return found


def labelled(number: int, lines: list[Line]) -> int:
    for line in lines:
        if label_of(line) == "none":
            return echo(line.qty)
        number += bounded(line.qty)
    return number


def settled(number: int, lines: list[Line]) -> int:
    try:
        with compensating() as undo:
            undo(undo_it, number)
            for line in lines:
                if echo(line.qty) > number:
                    return labelled(line.qty, lines[1:])
                if line.qty < 0:
                    raise Small(f"{line.qty} of {line.sku}")
    finally:
        say(f"settled {number}")
    return number


graph_part = dag(
    "graph_part",
    step("one", echo, arguments={"value": from_input("number")}),
    step("two", careful, depends_on=["one"], arguments={"name": from_input("name"), "loud": True}),
    step("three", flaky, depends_on=["one"], arguments={"value": from_step("one")}),
    step(
        "four",
        sum_of,
        depends_on=["three", "two"],
        arguments={"values": [from_step("three"), from_input("number")]},
    ),
)


@workflow
def tidy_part(number: int, factor: int = 2) -> int:
    return echo(number) * factor


@workflow
def picks(number: int) -> int:
    """Call `picky_part`: a workflow that another one of its module calls names its errors."""
    return picky_part(number)


CHILDREN = choice(picky_part, tidy_part)
