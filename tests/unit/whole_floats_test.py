"""Whole floats in a World: the engine's expressions give 2 for 2.0, and so does the test kit."""

from __future__ import annotations

from typing import Any

from holdfast import pure, task, workflow
from holdfast.testing import World, real


@task
def price(text: str) -> float:
    return float(text)


@pure
def described(value: Any) -> str:
    return f"{value!r} {type(value).__name__}"


@task
def described_list(values: list[Any]) -> str:
    return repr(values)


@task
def doubled(value: float) -> str:
    return repr(value * 2)


@workflow
def describe(text: str) -> list[str]:
    found = price(text)
    return [described(found), described_list([found, 0.5]), doubled(found)]


def test_a_whole_float_reaches_an_any_parameter_as_an_int_as_in_the_engine() -> None:
    run = World(others=real).run(describe, "123.0")
    assert run.output == ["123 int", "[123, 0.5]", "246.0"]
