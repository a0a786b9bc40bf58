"""Choice rules: every operator on values of its kind and of others."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.jsonpath.comparisons import compile_rule
from holdfast.asl.jsonpath.dataflow import EffectiveInput
from holdfast.asl.jsonpath.jsonpath import PathSyntaxError
from holdfast.asl.template import StateError

MOMENT = EvaluationMoment(now_ms=0, draw=lambda: 0.5)


def decide(rule: dict[str, Any], data: Any, **variables: Any) -> Any:
    bindings = {**variables, "states": {"input": data, "context": {"Name": "x"}}}
    return compile_rule(rule).evaluate(bindings, MOMENT)


def compare(value: Any, operator: str, operand: Any) -> Any:
    return decide({"Variable": "$.v", operator: operand, "Next": "A"}, {"v": value, "o": operand})


@pytest.mark.parametrize(
    ("value", "operator", "operand", "result"),
    [
        ("b", "StringEquals", "b", True),
        ("abc", "StringMatches", "a*x*c", False),
        ("abxdc", "StringMatches", "a*x*c", True),
        ("b", "StringLessThan", "c", True),
        ("b", "StringGreaterThanEquals", "b", True),
        ("b", "StringGreaterThan", "b", False),
        (1, "StringEquals", "1", False),
        ("\U0001f600", "StringLessThan", "\uffff", True),
        (1, "NumericEquals", 1.0, True),
        (True, "NumericEquals", 1, False),
        ("1", "NumericEquals", 1, False),
        (0.1, "NumericLessThanEquals", 0.1, True),
        (2, "NumericGreaterThan", 1.9, True),
        (2**53 + 1, "NumericEquals", 2**53, False),
        (True, "BooleanEquals", True, True),
        (0, "BooleanEquals", False, False),
        ("2012-10-09T19:00:55Z", "TimestampEquals", "2012-10-09T20:00:55+01:00", True),
        ("2012-10-09T19:00:55.1Z", "TimestampGreaterThan", "2012-10-09T19:00:55.09Z", True),
        ("2012-10-09T19:00:55-01:00", "TimestampLessThan", "2012-10-09T19:00:55Z", False),
        ("2012-10-09", "TimestampLessThan", "2012-10-09T19:00:55Z", False),
        (5, "TimestampLessThan", "2012-10-09T19:00:55Z", False),
        ("a1.log", "StringMatches", "a*.log", True),
        ("a.log.log", "StringMatches", "*.log", True),
        ("abcbd", "StringMatches", "a*b*d", True),
        ("ab", "StringMatches", "ab*b", False),
        ("a*", "StringMatches", "a\\*", True),
        ("ax", "StringMatches", "a\\*", False),
        ("a\\b", "StringMatches", "a\\\\*", True),
        ("", "StringMatches", "*", True),
        (1, "StringMatches", "*", False),
        (None, "IsNull", True, True),
        (None, "IsNull", False, False),
        (0, "IsNumeric", True, True),
        (False, "IsNumeric", False, True),
        ("", "IsString", True, True),
        (False, "IsBoolean", True, True),
        ("2012-10-09T19:00:55Z", "IsTimestamp", True, True),
        ("2012-10-09T19:00:55", "IsTimestamp", True, False),
        ("2012-13-09T19:00:55Z", "IsTimestamp", True, False),
        ("2012-10-09T19:00:55+19:00", "IsTimestamp", True, False),
        (None, "IsPresent", True, True),
    ],
)
def test_an_operator_compares_values_of_its_kind_and_is_false_of_others(
    value: Any, operator: str, operand: Any, result: bool
) -> None:
    assert compare(value, operator, operand) is result


def test_the_other_side_may_be_a_path_of_the_input_the_context_or_a_variable() -> None:
    for path in ("$.o", "$$.Name", "$name"):
        rule = {"Variable": "$.v", "StringEqualsPath": path, "Next": "A"}
        assert decide(rule, {"v": "x", "o": "x"}, name="x") is True
    rule = {"Variable": "$.v", "NumericLessThanPath": "$.o"}
    assert decide(rule, {"v": 1, "o": "2"}) is False


def test_rules_nest() -> None:
    one, two = {"Variable": "$.v", "NumericEquals": 1}, {"Variable": "$.w", "IsPresent": True}
    assert decide({"And": [one, two]}, {"v": 1, "w": 0}) is True
    assert decide({"And": [one, {"Not": two}]}, {"v": 1, "w": 0}) is False
    assert decide({"Or": [one, two]}, {"v": 2, "w": 0}) is True
    assert decide({"Not": {"Or": [one, two]}}, {"v": 2}) is True


def test_a_rule_stops_at_the_part_that_decides_it() -> None:
    missing = {"Variable": "$.no", "NumericEquals": 1}
    assert decide({"Or": [{"Variable": "$.v", "IsPresent": True}, missing]}, {"v": 1}) is True
    assert decide({"And": [{"Variable": "$.no", "IsPresent": True}, missing]}, {}) is False


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ({"Variable": "$.no", "NumericEquals": 1}, "$.no"),
        ({"Variable": "$.no", "IsNull": True}, "$.no"),
        ({"Variable": "$.v", "NumericEqualsPath": "$.no.such"}, "$.no.such"),
        ({"Variable": "$no", "IsString": False}, "$no"),
    ],
)
def test_a_missing_value_is_an_error(rule: dict[str, Any], path: str) -> None:
    with pytest.raises(StateError) as missing:
        decide(rule, {"v": 1})
    assert missing.value.error == "States.Runtime"
    assert missing.value.cause == (
        f"Invalid path '{path}': The choice state's condition path references an invalid value."
    )


def test_presence_is_asked_without_error() -> None:
    assert decide({"Variable": "$.no.such", "IsPresent": False}, {}) is True
    assert decide({"Variable": "$no", "IsPresent": False}, {}) is True
    assert decide({"Variable": "$.items[?(@.a)]", "IsPresent": True}, {"items": [{}]}) is False


def test_a_rule_sees_the_input_after_its_input_path() -> None:
    source = EffectiveInput.of({"InputPath": "$.inner"})
    rule = compile_rule({"Variable": "$.v", "NumericEquals": 1}, source)
    bindings: Any = {"states": {"input": {"inner": {"v": 1}}, "context": {}}}
    assert rule.evaluate(bindings, MOMENT) is True


@pytest.mark.parametrize(
    "rule",
    [
        {"Variable": "$.v", "NumericNearly": 1},
        {"Variable": "$.v", "StringMatchesPath": "$.o"},
        {"Variable": "$.v"},
        {"Variable": "$.v", "IsNull": True, "IsString": True},
        {"NumericEquals": 1},
        {"Variable": "v", "IsNull": True},
        {"Variable": "$.v", "NumericEqualsPath": "o"},
    ],
)
def test_an_object_that_is_no_rule_is_refused_when_it_is_compiled(rule: dict[str, Any]) -> None:
    with pytest.raises(PathSyntaxError):
        compile_rule(rule)
