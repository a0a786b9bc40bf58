# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import Retry, workflow


@workflow
def most(numbers: list[int]) -> int:
    return max(number for number in numbers)


@workflow
def flow(numbers: list[int]) -> str:
    try:
        most(numbers)
    except ValueError:
        pass
    try:
        most(numbers)
    except Exception as err:
        return f"{err}"
    most.options(retry=Retry(on=(ValueError,)))(numbers)
    return ""
