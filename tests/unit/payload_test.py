"""Payload templates: evaluated fields, unchanged fields, and the errors about missing values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.jsonpath.dataflow import ERROR_DATA, RESULT_DATA
from holdfast.asl.jsonpath.jsonpath import PathSyntaxError
from holdfast.asl.jsonpath.payload import compile_payload, variables_of
from holdfast.asl.template import StateError
from tests.thorough import examples

MOMENT = EvaluationMoment(now_ms=0, draw=lambda: 0.5)


def bindings(data: Any, **others: Any) -> dict[str, Any]:
    context = {"Execution": {"Id": "e-1"}}
    return {"name": {"first": "Ann"}, "states": {"input": data, "context": context, **others}}


def test_fields_that_end_with_a_dollar_are_evaluated_and_others_are_not() -> None:
    template: dict[str, Any] = {
        "all.$": "$",
        "sku.$": "$.line.sku",
        "literal": "$.line.sku",
        "id.$": "$$.Execution.Id",
        "first.$": "$name.first",
        "call.$": "States.Format('{}!', $.line.sku)",
        "deep": {"list": [{"x.$": "$.n"}, "$.n", [{"y.$": "$.n"}]]},
        "none": {"a": [1, {"b": None}]},
    }
    data = {"line": {"sku": "A-1"}, "n": 7}
    assert compile_payload(template).evaluate(bindings(data), MOMENT) == {
        "all": data,
        "sku": "A-1",
        "literal": "$.line.sku",
        "id": "e-1",
        "first": "Ann",
        "call": "A-1!",
        "deep": {"list": [{"x": 7}, "$.n", [{"y": 7}]]},
        "none": {"a": [1, {"b": None}]},
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=examples(400), deadline=None)
@given(JSON)
def test_a_value_without_a_dynamic_field_is_handed_out_as_it_is(value: Any) -> None:
    if '.$"' in repr(value).replace("'", '"'):
        return
    assert compile_payload(value).evaluate(bindings({}), MOMENT) is value


@settings(max_examples=examples(400), deadline=None)
@given(st.dictionaries(st.text().filter(lambda key: not key.endswith(".$")), JSON))
def test_literals_beside_dynamic_fields_are_not_changed(value: dict[str, Any]) -> None:
    if '.$"' in repr(value).replace("'", '"'):
        return
    found = compile_payload({**value, "there.$": "$.n"}).evaluate(bindings({"n": 1}), MOMENT)
    assert found == {**value, "there": 1}


def test_the_source_gives_the_value_of_dollar() -> None:
    template: Any = {"x.$": "$.x"}
    bound = bindings({"x": 1}, result={"x": 2}, errorOutput={"x": 3})
    assert compile_payload(template).evaluate(bound, MOMENT) == {"x": 1}
    assert compile_payload(template, RESULT_DATA).evaluate(bound, MOMENT) == {"x": 2}
    assert compile_payload(template, ERROR_DATA).evaluate(bound, MOMENT) == {"x": 3}


@pytest.mark.parametrize(
    ("data", "path", "cause"),
    [
        (
            {"a": 1.0},
            "$.no.such",
            (
                "The JSONPath '$.no.such' specified for the field 'v.$' could not be found in the "
                "input '{\"a\":1.0}'"
            ),
        ),
        (
            {},
            "$$.Execution.No",
            (
                "The JSONPath '$$.Execution.No' specified for the field 'v.$' could not be found "
                'in the input \'{"Execution":{"Id":"e-1"}}\''
            ),
        ),
        (
            {"a": 1},
            "$nothing",
            (
                "The JSONPath '$nothing' specified for the field 'v.$' could not be found in the "
                "input '{\"a\":1}'"
            ),
        ),
        (
            {"a": 1},
            "$.a[0]",
            (
                "Invalid path '$.a[0]' : Filter: [0] can only be applied to arrays. Current "
                "context is: 1"
            ),
        ),
        (None, "$.a", "Unable to apply Path transformation to null or empty input."),
    ],
)
def test_a_missing_value_is_named_with_its_field_and_the_input(
    data: Any, path: str, cause: str
) -> None:
    with pytest.raises(StateError) as missing:
        compile_payload({"deep": [{"v.$": path}]}).evaluate(bindings(data), MOMENT)
    assert (missing.value.error, missing.value.cause) == ("States.Runtime", cause)
    assert not missing.value.is_whole


def test_a_path_to_many_gives_an_empty_list_where_there_is_nothing() -> None:
    template: Any = {"v.$": "$.no.such[*].x"}
    assert compile_payload(template).evaluate(bindings({}), MOMENT) == {"v": []}


@pytest.mark.parametrize("value", ["no path", "$.", 1, None, {"a": 1}, "States.No()", ""])
def test_a_dynamic_field_holds_a_path_or_a_call(value: Any) -> None:
    with pytest.raises(PathSyntaxError):
        compile_payload({"v.$": value})


def test_a_document_many_times_over_is_too_large() -> None:
    template = compile_payload({f"copy {number}.$": "$" for number in range(200)})
    with pytest.raises(StateError, match="too large"):
        template.evaluate(bindings("x" * 100_000), MOMENT)


def test_a_value_that_is_wrapped_again_and_again_is_too_deep_at_last() -> None:
    template = compile_payload({"again.$": "$"})
    value: Any = {}
    with pytest.raises(StateError, match="too deep"):
        for _ in range(1_000):
            value = template.evaluate(bindings(value), MOMENT)


def test_the_variables_of_a_template_are_known_without_running_it() -> None:
    template: Any = {
        "a.$": "$one.x",
        "b": [{"c.$": "States.Array($two, $.x, $$.Y, $one)"}],
        "d": "$three",
        "e.$": "$.four",
    }
    assert variables_of(template) == ("one", "two")
