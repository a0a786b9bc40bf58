# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import Retry, TaskError, workflow


class NoNumbers(TaskError): ...


@workflow
def most(numbers: list[int]) -> int:
    try:
        return max(numbers)
    except Exception:
        raise NoNumbers("no numbers")


@workflow
def flow(numbers: list[int]) -> str:
    try:
        most(numbers)
    except NoNumbers:
        pass
    try:
        most(numbers)
    except Exception as err:
        return f"{err}"
    most.options(retry=Retry(on=(NoNumbers,)))(numbers)
    return ""
