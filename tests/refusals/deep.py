"""Workflows with unusually deep nesting, and some with usual nesting."""

from __future__ import annotations

from collections.abc import Iterator

from tests.refusals.candidates import HEADER

_HEAD = f"{HEADER}@workflow\ndef flow(n: int, text: str, lines: list[int]) -> int:\n"


def sums(terms: int) -> str:
    return f"{_HEAD}    return {' + '.join(['n'] * terms)}\n"


def attributes(depth: int) -> str:
    return f"{_HEAD}    return n{'.x' * depth}\n"


def negations(depth: int) -> str:
    return f"{_HEAD}    return {'not ' * depth}n\n"


def conditions(cases: int) -> str:
    chain = " else ".join(f"{number} if n == {number}" for number in range(cases))
    return f"{_HEAD}    return {chain} else 0\n"


def elifs(cases: int) -> str:
    tests = "".join(f"    elif n == {number}:\n        x = {number}\n" for number in range(cases))
    return f"{_HEAD}    if n < 0:\n        x = 0\n{tests}    else:\n        x = 1\n    return x\n"


def branches(depth: int) -> str:
    return (
        f"{_HEAD}    parallel({'lambda: parallel(' * depth}lambda: n{')' * depth})\n    return n\n"
    )


def loops(depth: int) -> str:
    heads = "".join(f"{'    ' * (level + 1)}for x{level} in lines:\n" for level in range(depth))
    return f"{_HEAD}    t = 0\n{heads}{'    ' * (depth + 1)}t += 1\n    return t\n"


def all_deep() -> Iterator[str]:
    for write in (sums, attributes, negations, conditions, elifs):
        yield from map(write, (30, 150, 700))
    yield from map(branches, (5, 30, 80))
    yield from map(loops, (5, 10, 18))
