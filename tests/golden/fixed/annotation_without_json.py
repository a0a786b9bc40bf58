# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import task, workflow


@task
def numbers() -> list[int]:
    return [1]


@task
def count(database: str = "") -> int:
    return 1


@workflow
def flow() -> int:
    numbers()
    return count()


@workflow
def fails() -> None:
    raise ValueError("wrong")


@workflow
def always_fails() -> None:
    raise ValueError("wrong")


@workflow
def no_type(counts: dict[str, int]) -> int:
    return 1


@workflow
def half_a_type(counts: dict[str, int]) -> int:
    return 1


@workflow
def function_as_type(counts: dict[str, int]) -> int:
    return 1
