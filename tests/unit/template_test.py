"""Templates: the texts that are expressions, their results, and AWS's messages for missing ones."""

from __future__ import annotations

import pytest

from holdfast.asl.jsonata.jsonata import EvaluationMoment, JsonataError, StrictJson
from holdfast.asl.template import EvaluationError, compile_template, is_expression

MOMENT = EvaluationMoment(now_ms=0, draw=lambda: 0.5)


def evaluate(
    value: StrictJson, bindings: dict[str, StrictJson], where: str = "/States/ship/Output"
) -> StrictJson:
    return compile_template(value, where).evaluate(bindings, MOMENT)


def failure(
    value: StrictJson, where: str, bindings: dict[str, StrictJson] | None = None
) -> EvaluationError:
    with pytest.raises(EvaluationError) as caught:
        evaluate(value, bindings or {}, where)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{% $a %}", True),
        ("{%$a%}", True),
        ("{%%}", True),
        (" {% $a %}", False),
        ("{% $a %} ", False),
        ("{% $a", False),
        ("$a %}", False),
        ("{%}", False),
        ("", False),
    ],
)
def test_an_expression_begins_and_ends_with_its_marks(text: str, expected: bool) -> None:
    assert is_expression(text) is expected


def test_expressions_are_replaced_and_everything_else_is_literal() -> None:
    template: StrictJson = {
        "id": "{% $order.id %}",
        "lines": ["{% $order.qty %}", 2, None, {"deep": "{% $order.qty + 1 %}"}],
        "note": "{% is not closed",
        "fixed": {"a": [1, True, None]},
    }
    assert evaluate(template, {"order": {"id": "O-1", "qty": 4}}) == {
        "id": "O-1",
        "lines": [4, 2, None, {"deep": 5}],
        "note": "{% is not closed",
        "fixed": {"a": [1, True, None]},
    }


def test_a_template_without_expressions_is_handed_out_as_it_is() -> None:
    literal: StrictJson = {"a": [1, {"b": None}]}
    template = compile_template(literal, "/States/x/Arguments")
    assert template.evaluate({}, MOMENT) is literal
    half = compile_template({"a": literal, "b": "{% 1 %}"}, "/States/x/Arguments")
    result = half.evaluate({}, MOMENT)
    assert isinstance(result, dict)
    assert result["a"] is literal


def test_null_is_a_result_and_not_the_lack_of_one() -> None:
    assert evaluate({"a": "{% null %}", "b": "{% $x %}"}, {"x": None}) == {"a": None, "b": None}


def test_an_undefined_field_fails_in_the_words_of_aws() -> None:
    error = failure({"result": "{% $doesNotExist %}"}, "/States/State0/Assign")
    assert error.location == "Assign/result"
    assert error.cause == (
        "The JSONata expression '$doesNotExist' specified for the field 'Assign/result' "
        "returned nothing (undefined)."
    )


def test_a_thrown_error_carries_its_code_in_the_words_of_aws() -> None:
    error = failure({"r": "{% $unknown(1) %}"}, "/States/State_0/Output")
    assert error.location == "Output/r"
    assert error.cause == (
        "The JSONata expression '$unknown(1)' specified for the field 'Output/r' threw an error "
        "during evaluation. T1006: Attempted to invoke a non-function"
    )


@pytest.mark.parametrize(
    "value",
    [
        "{% ($x := $pad('x', 1000000, 'x'); $map([1..20], function($i){$x})) %}",
        "{% $nothing{'k': $map([1..20], function($i){$large})}.k %}",
        {f"f{n}": "{% $large %}" for n in range(20)},
    ],
    ids=["one field", "a field of a group", "fields together"],
)
def test_a_value_that_is_too_large_to_be_written_down_fails_its_field(value: StrictJson) -> None:
    template = compile_template(value, "/States/x/Output")
    with pytest.raises(EvaluationError, match="more than 16,777,216 characters"):
        template.evaluate({"large": "x" * 1_000_000}, MOMENT)


def test_many_fields_together_may_be_as_large_as_one() -> None:
    template = compile_template({f"f{n}": "{% $small %}" for n in range(20)}, "/States/x/Output")
    assert template.evaluate({"small": 1}, MOMENT) == {f"f{n}": 1 for n in range(20)}


def test_null_is_no_condition() -> None:
    error = failure("{% null %}", "/States/x/Choices/0/Condition")
    assert "Expected 'boolean', but was 'null' for value: null" in error.cause


def test_a_spent_budget_is_shown_without_a_code() -> None:
    error = failure("{% ($f := function(){$f()}; $f()) %}", "/States/x/Output")
    assert "threw an error during evaluation: The expression was stopped" in error.cause


@pytest.mark.parametrize(
    ("where", "value", "location"),
    [
        ("/States/ship/Arguments", "{% $no %}", "Arguments"),
        ("/States/ship/Arguments", {"a": {"b": "{% $no %}"}}, "Arguments/a/b"),
        ("/States/ship/Arguments", {"a": [1, "{% $no %}"]}, "Arguments/a[1]"),
        ("/States/pick/Choices/1/Condition", "{% $no %}", "Choices[1]/Condition"),
        ("/States/pick/Choices/0/Assign", {"x": "{% $no %}"}, "Choices[0]/Assign/x"),
        ("/States/call/Catch/2/Output", "{% $no %}", "Catch[2]/Output"),
        ("/States/a/ItemProcessor/States/b/Items", "{% $no %}", "Items"),
        ("/States/pack/wrap/Seconds", "{% $no %}", "Seconds"),
    ],
)
def test_a_field_is_named_as_aws_names_it(where: str, value: StrictJson, location: str) -> None:
    assert failure(value, where).location == location


def test_a_syntax_error_is_found_when_the_template_is_compiled() -> None:
    with pytest.raises(JsonataError) as caught:
        compile_template({"a": "{% $b + %}"}, "/States/x/Arguments")
    assert caught.value.code == "S0207"
