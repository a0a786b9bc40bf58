"""Ranges and enum classes of a module are gone through, and an optional dict is copied."""

from __future__ import annotations

from enum import Enum

import pytest

from holdfast import each, task, workflow
from holdfast.testing import World


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


ITERATIONS = range(1, 4)
DOWN = range(9, 0, -3)


@task
def run(n: int) -> int:
    return n


@workflow
def runs_each() -> list[int]:
    return [*each(ITERATIONS, run), *each(list(ITERATIONS), run), *each(DOWN, run)]


@workflow
def goes_through() -> str:
    found = ""
    for number in ITERATIONS:
        found += str(number)
    for colour in Colour:
        found += colour.value
    return found + "".join(colour.value for colour in list(Colour))


@workflow
def copies(seen: dict[str, list[str]] | None) -> dict[str, list[str]]:
    names = dict(seen or {})
    names["b"] = ["c"]
    return names


def test_each_runs_the_numbers_of_a_range_of_the_module() -> None:
    ran = World({run: lambda n: n}).run(runs_each)
    assert ran.output == [1, 2, 3, 1, 2, 3, 9, 6, 3]


def test_a_loop_goes_through_a_range_and_an_enum_class() -> None:
    assert World().run(goes_through).output == "123redblueredblue"


@pytest.mark.parametrize("seen", [None, {}, {"a": ["x"]}])
def test_an_optional_dict_is_copied(seen: dict[str, list[str]] | None) -> None:
    assert World().run(copies, seen).output == {**(seen or {}), "b": ["c"]}
