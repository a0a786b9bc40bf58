# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import parallel, workflow
from tests.golden.shop import charge


def renewed(numbers: list[int]) -> list[int]:
    numbers.append(0)
    numbers = list(numbers)
    numbers.append(1)
    return numbers


def watched(numbers: list[int]) -> None:
    numbers.append(2)
    parallel(lambda: numbers, lambda: 1)


def held(numbers: list[int]) -> int:
    same = numbers
    numbers.append(3)
    return len(same)


@workflow
def flow(numbers: list[int], others: list[int], kept: list[int]) -> int:
    n = 0

    def bump() -> int:
        nonlocal n
        n += 1
        return n

    def grow() -> int:
        again = kept
        again.append(n)
        return missing + len(again)

    n += bump()
    m = n + bump()
    while bump() < 7:
        charge("o1", n)
    more = renewed(numbers)
    watched(numbers)
    count = held(others)
    count = grow()
    return n + m + count + len(more)
