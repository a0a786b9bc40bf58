# ruff: noqa
# mypy: ignore-errors
from __future__ import annotations

from holdfast import parallel, workflow
from tests.golden.shop import charge


def renewed(numbers: list[int]) -> list[int]:
    numbers.append(0)
    own_numbers = list(numbers)
    own_numbers.append(1)
    return own_numbers


def added(numbers: list[int]) -> None:
    numbers.append(2)


def watched(numbers: list[int]) -> None:
    parallel(lambda: numbers, lambda: 1)


def held(numbers: list[int]) -> int:
    same = list(numbers)
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
        again = list(again)
        again.append(n)
        return len(again)

    old_n = n
    changed = bump()
    n = old_n + changed
    old_n = n
    changed = bump()
    m = old_n + changed
    while True:
        changed = bump()
        if not (changed < 7):
            break
        charge("o1", n)
    more = renewed(numbers)
    added(numbers)
    watched(list(numbers))
    count = held(others)
    count = grow()
    return n + m + count + len(more)
