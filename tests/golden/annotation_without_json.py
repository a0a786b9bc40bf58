# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Connection
from typing import TYPE_CHECKING

from holdfast import task, workflow

if TYPE_CHECKING:
    from decimal import Decimal


@task
def numbers() -> Iterator[int]:
    return iter([1])


@task
def count(connection: Connection | None = None) -> int:
    return 1


@workflow
def flow() -> int:
    numbers()
    return count()


@workflow
def fails() -> Exception:
    raise ValueError("wrong")


@workflow
def no_type(counts: {}) -> int:
    return 1


@workflow
def half_a_type(counts: dict[str]) -> int:
    return 1


def convert(amount: Decimal) -> int:
    return 1


@workflow
def function_as_type(counts: convert) -> int:
    return 1
