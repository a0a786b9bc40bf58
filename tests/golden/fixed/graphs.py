# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast import (dag, hours, seconds, from_input, from_step, step, task)
from tests.golden.shop import Payment, charge


@task
def extract(day: str) -> list[int]:
    return [len(day)]


@task
def clean(extract: list[int] | None, limit: int = 10) -> list[int]:
    return (extract or [])[:limit]


@task
def publish(clean: list[int], extract: list[int]) -> str:
    return f"{clean} of {extract}"


@task
def number(day: int) -> int:
    return day


@task
def begin(order_id: str) -> None: ...


@task
def collect(first: str, second: int) -> None: ...


@task
def receipt(payment: Payment) -> list[int]: ...


@task
def tell(to: Payment, text: str) -> None: ...


@task
def nothing(to: str) -> None: ...


@task(timeout=seconds(90))
def odd() -> None: ...


@task
def plain(day: str) -> None: ...


@task
def keep(value: Any) -> None: ...


@task
def keep_rows(value: Any, rows: list[int]) -> None: ...


nobody_begins = dag(
    "nobody_begins",
    step("a", odd.options(timeout=timedelta(seconds=2)), depends_on=[]),
    step("b", odd.options(timeout=timedelta(seconds=2)), depends_on=["a"]),
    step("c", odd.options(timeout=timedelta(seconds=2)), depends_on=["x", "b"]),
    step("x", odd.options(timeout=timedelta(seconds=2))),
)
two_circles = dag(
    "two_circles",
    step("a", odd.options(timeout=timedelta(seconds=2)), depends_on=[]),
    step("b", odd.options(timeout=timedelta(seconds=2)), depends_on=["a"]),
    step("c", odd.options(timeout=timedelta(seconds=2)), depends_on=[]),
    step("d", odd.options(timeout=timedelta(seconds=2)), depends_on=["c"]),
)
ids = dag(
    "ids",
    step("extract", extract, depends_on=[]),
    step("clean", clean, depends_on=["extract", "extract"]),
    step("clean_2", clean, depends_on=["extract"]),
    step("clean_up", clean, depends_on=["extract"]),
)
name = dag("nightly", step("extract", extract))
empty = dag("empty", step("extract", extract))
tasks = dag(
    "tasks",
    step("odd", odd),
    step("render", begin, arguments={"order_id": "o1"}),
    step("gather", collect),
    step("plain", plain),
)
no_step = dag("no_step", step("extract", extract))
timeout = dag("timeout", step("extract", extract), timeout=hours(2))
forgotten = dag(
    "forgotten",
    step("extract", extract, arguments={"day": from_input("day")}),
    step("clean", clean, depends_on=["extract"]),
    step("publish", publish, depends_on=["clean", "extract"]),
    step("day", extract, arguments={"day": from_input("day")}),
)
arguments = dag(
    "arguments",
    step("kept", keep, arguments={"value": from_input("value")}),
    step("rows", keep_rows, arguments={"value": 1, "rows": [1]}),
    step("charge", charge, arguments={"order_id": "o1", "cents": 5}),
    step("later", receipt, depends_on=["charge"], arguments={"payment": from_step("charge")}),
    step("other", receipt, arguments={"payment": from_step("charge")}, depends_on=["charge"]),
    step("field", charge, arguments={"order_id": from_input("order_id")}),
    step("typed", tell, arguments={"to": from_step("charge")}, depends_on=["charge"]),
    step("value", charge, arguments={"order_id": "o1", "cents": from_input("cents")}),
    step("large", charge, arguments={"order_id": "o1", "cents": from_input("cents")}),
)
types = dag(
    "types",
    step("charge", charge),
    step("extract", receipt, depends_on=["charge"], arguments={"payment": from_step("charge")}),
    step("clean", clean, depends_on=["extract"]),
    step("publish", publish, depends_on=["clean", "extract"]),
)
result = dag(
    "result",
    step("extract", nothing),
    step("clean", clean, depends_on=["extract"]),
)
fields = dag(
    "fields",
    step("text", extract),
    step("whole", number, arguments={"day": from_input("whole_day")}),
)
many = dag(
    "many",
    *[step(f"same_{n}", odd.options(timeout=timedelta(seconds=2))) for n in range(2)],
)
