"""Floats in workflows: places, percent, rounding and sums, as Python computes them."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from holdfast.asl.jsonata.jsonata import EvaluationMoment, compile_expression
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.format_specs import format_query
from holdfast.compiler.expressions.query import QueryTree, Variable, render
from holdfast.compiler.expressions.remainders import float_floor, float_modulo
from holdfast.compiler.expressions.rounding import PLACES_MAX, rounded
from holdfast.compiler.expressions.sums import compensated_sum, plain_sum
from holdfast.compiler.types.types import FLOAT

SPECS = [".2f", ",.2f", ".0f", ".1f", ".0%", ".1%", ">12.3f", "+.2f", "09.2f", "^15.1f", "f", ".7f"]
NUMBERS = [
    2.675,
    0.125,
    0.375,
    1.005,
    -1.005,
    0.5,
    1.5,
    2.5,
    0.995,
    9.995,
    -0.001,
    1e-300,
    123456.785,
    1e15 + 0.5,
    1e20,
]
X, Y = Variable("x"), Variable("y")
MOMENT = EvaluationMoment(0, lambda: 0.0)


def value_of(query: QueryTree, **bindings: Any) -> Any:
    return compile_expression(render(query)).evaluate(bindings, MOMENT)


def drawn(seed: int) -> list[float]:
    print(f"seed {seed}")
    random_ = random.Random(seed)
    near = [random_.randrange(-4_000, 4_000) / 2 ** random_.randrange(1, 12) for _ in range(40)]
    money = [random_.randrange(100_000) * 0.01 + 0.005 for _ in range(40)]
    large = [random_.uniform(-1e9, 1e9) for _ in range(20)]
    return [number for number in (*NUMBERS, *near, *money, *large) if number]


@pytest.mark.parametrize("spec", SPECS)
def test_a_float_with_places_has_the_digits_of_python(spec: str) -> None:
    query = format_query(TypedQuery(X, FLOAT), spec)
    assert query is not None
    expression = compile_expression(render(query))
    for number in drawn(1):
        assert expression.evaluate({"x": number}, MOMENT) == format(number, spec), number


@pytest.mark.parametrize("places", range(1, PLACES_MAX + 1))
def test_round_gives_the_double_of_python(places: int) -> None:
    expression = compile_expression(render(rounded(X, places)))
    for number in [*drawn(2), 5e15 + 0.5, 900_719_925.4740993, 1e22]:
        assert expression.evaluate({"x": number}, MOMENT) == round(number, places), number


@pytest.mark.parametrize("divisor", [0.1, -0.1, 3.0, -7.5, 1e10])
def test_floor_and_remainder_of_floats_are_those_of_python(divisor: float) -> None:
    for number in drawn(3):
        bindings = {"x": number, "y": divisor}
        assert value_of(float_floor(X, Y), **bindings) == number // divisor
        assert value_of(float_modulo(X, Y), **bindings) == number % divisor


@pytest.mark.parametrize("numbers", [[0.1] * 10, [1e16, 1.0, -1e16], [0.1, 0.2, 0.3], [7.5], []])
def test_sums_follow_the_python_that_compiles(numbers: list[float]) -> None:
    plain = errors = 0.0
    for number in numbers:
        total = plain + number
        is_larger = abs(plain) >= abs(number)
        errors += (plain - total) + number if is_larger else (number - total) + plain
        plain = total
    assert value_of(plain_sum(X, Y), x=numbers, y=0) == plain
    assert value_of(compensated_sum(X, Y), x=numbers, y=0) == plain + errors
    assert math.isclose(value_of(compensated_sum(X, Y), x=numbers, y=0), math.fsum(numbers))
