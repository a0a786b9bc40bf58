"""What generated programs are made of: models, enums, errors, tasks, child workflows."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel

from holdfast import (
    BlockTimeout,
    CompensationFailed,
    Retry,
    TaskError,
    WaitTimeout,
    ask,
    compensating,
    days,
    each,
    first,
    hours,
    minutes,
    parallel,
    pure,
    role,
    seconds,
    shielded,
    sleep,
    sleep_until,
    task,
    timeout,
    wait_for_event,
    workflow,
)

__all__ = [
    "UUID",
    "Answer",
    "Any",
    "BaseModel",
    "BlockTimeout",
    "Colour",
    "CompensationFailed",
    "Decimal",
    "Level",
    "Line",
    "Literal",
    "Order",
    "Other",
    "Problem",
    "Retry",
    "Size",
    "Small",
    "TaskError",
    "WaitTimeout",
    "ask",
    "careful",
    "compensating",
    "date",
    "datetime",
    "days",
    "each",
    "echo",
    "first",
    "flaky",
    "hours",
    "minutes",
    "name_of",
    "order_of",
    "parallel",
    "part",
    "pure",
    "role",
    "say",
    "seconds",
    "shielded",
    "sleep",
    "sleep_until",
    "slow_part",
    "task",
    "timedelta",
    "timeout",
    "total_of",
    "undo_it",
    "upper",
    "wait_for_event",
    "workflow",
]


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


class Answer(BaseModel):
    yes: bool
    note: str = ""


class Problem(TaskError): ...  # noqa: N818


class Small(Problem): ...


class Other(TaskError): ...  # noqa: N818


# What tasks come to is drawn: their bodies are never run.


@task
def echo(value: int) -> int:
    return value


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
