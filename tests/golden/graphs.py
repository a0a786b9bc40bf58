# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast import (dag, from_input, from_step, step, task)
from tests.golden.shop import charge, gather, notify, render


@task
def extract(day: str) -> list[int]:
    return [len(day)]


@task
def clean(extract: list[int], limit: int = 10) -> list[int]:
    return extract[:limit]


@task
def publish(clean: list[int], extract: list[int]) -> str:
    return f"{clean} of {extract}"


@task
def number(day: int) -> int:
    return day


@task(timeout=timedelta(seconds=1.5))
def odd() -> None: ...


def plain(day: str) -> None: ...


@task
def keep(value: Any) -> None: ...


nobody_begins = dag(
    "nobody_begins",
    step("a", odd.options(timeout=timedelta(seconds=2)), depends_on=["c"]),
    step("b", odd.options(timeout=timedelta(seconds=2)), depends_on=["a"]),
    step("c", odd.options(timeout=timedelta(seconds=2)), depends_on=["x", "b"]),
    step("x", odd.options(timeout=timedelta(seconds=2))),
)
two_circles = dag(
    "two_circles",
    step("a", odd.options(timeout=timedelta(seconds=2)), depends_on=["b"]),
    step("b", odd.options(timeout=timedelta(seconds=2)), depends_on=["a"]),
    step("c", odd.options(timeout=timedelta(seconds=2)), depends_on=["d"]),
    step("d", odd.options(timeout=timedelta(seconds=2)), depends_on=["c"]),
)
ids = dag(
    "ids",
    step("extract", extract, depends_on=["extract"]),
    step("clean", clean, depends_on=["extract", "extarct"]),
    step("clean", clean, depends_on=["extract"]),
    step("clean up", clean, depends_on=["extract"]),
)
name = dag("every night", step("extract", extract))
empty = dag("empty")
tasks = dag(
    "tasks",
    step("odd", odd),
    step("render", render, arguments={"order_id": "o1"}),
    step("gather", gather),
    step("plain", plain),
)
no_step = dag("no_step", extract)
timeout = dag("timeout", step("extract", extract), timeout=timedelta(milliseconds=5))
forgotten = dag(
    "forgotten",
    step("extract", extract),
    step("clean", clean, depends_on=["extract"]),
    step("publish", publish, depends_on=["clean"]),
    step("day", extract),
)
arguments = dag(
    "arguments",
    step("kept", keep, arguments={"value": object()}),
    step("rows", keep, arguments={"value": 1, "rows": [1]}),
    step("charge", charge, arguments={"order_id": "o1", "cent": 5}),
    step("later", charge, arguments={"order_id": from_step("charge")}),
    step("other", charge, arguments={"order_id": from_step("chrage")}, depends_on=["charge"]),
    step("field", charge, arguments={"order_id": from_input("order id")}),
    step("typed", notify, arguments={"to": from_step("charge")}, depends_on=["charge"]),
    step("value", charge, arguments={"order_id": "o1", "cents": "many"}),
    step("large", charge, arguments={"order_id": "o1", "cents": 2**60}),
)
types = dag(
    "types",
    step("charge", charge),
    step("extract", clean, depends_on=["charge"], arguments={"extract": from_step("charge")}),
    step("clean", clean, depends_on=["extract"]),
    step("publish", publish, depends_on=["clean", "extract"]),
)
result = dag(
    "result",
    step("extract", notify),
    step("clean", clean, depends_on=["extract"]),
)
fields = dag(
    "fields",
    step("text", extract),
    step("whole", number),
)
many = dag(
    "many",
    *[step("same", odd.options(timeout=timedelta(seconds=2))) for _ in range(2)],
)
