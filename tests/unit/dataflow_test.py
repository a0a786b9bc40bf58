"""InputPath, Parameters, ResultSelector, ResultPath, OutputPath, and fields that are one path."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.jsonpath.dataflow import (
    INPUT_DATA,
    EffectiveInput,
    PathArguments,
    PathOutput,
    items_path,
    percentage_path,
    task_seconds_path,
    text_path,
    wait_seconds_path,
    wait_timestamp_path,
    whole_number_path,
)
from holdfast.asl.jsonpath.jsonpath import PathSyntaxError
from holdfast.asl.jsonpath.payload import compile_payload
from holdfast.asl.template import StateError, Template

MOMENT = EvaluationMoment(now_ms=0, draw=lambda: 0.5)
INPUT: dict[str, Any] = {"a": {"b": 1}, "c": 2}


def bound(data: Any = INPUT, **others: Any) -> dict[str, Any]:
    context = {"Execution": {"Input": {"values": [1]}}}
    return {"name": "Ann", "states": {"input": data, "context": context, **others}}


def refused(template: Template, bindings: dict[str, Any]) -> StateError:
    with pytest.raises(StateError) as error:
        template.evaluate(bindings, MOMENT)
    return error.value


@pytest.mark.parametrize(
    ("state", "arguments"),
    [
        ({}, INPUT),
        ({"InputPath": "$.a"}, {"b": 1}),
        ({"InputPath": None}, {}),
        ({"InputPath": "$name"}, "Ann"),
        ({"InputPath": "$$.Execution.Input"}, {"values": [1]}),
        ({"InputPath": "$.a", "Parameters": {"x.$": "$.b", "y": 5}}, {"x": 1, "y": 5}),
        ({"Parameters": [1, 2]}, [1, 2]),
    ],
)
def test_a_task_works_on_its_input_after_input_path_and_parameters(
    state: Any, arguments: Any
) -> None:
    assert PathArguments.of(state).evaluate(bound(), MOMENT) == arguments


@pytest.mark.parametrize(
    ("state", "output"),
    [
        ({}, {"r": [3]}),
        ({"ResultPath": None}, INPUT),
        ({"ResultPath": "$.a.r"}, {"a": {"b": 1, "r": {"r": [3]}}, "c": 2}),
        ({"InputPath": "$.a", "ResultPath": "$.x"}, {**INPUT, "x": {"r": [3]}}),
        ({"ResultSelector": {"first.$": "$.r[0]"}}, {"first": 3}),
        ({"ResultSelector": {"f.$": "$.r[0]"}, "ResultPath": "$.x", "OutputPath": "$.x"}, {"f": 3}),
        ({"OutputPath": None}, {}),
        ({"OutputPath": "$name"}, "Ann"),
        ({"ResultPath": None, "OutputPath": "$.c"}, 2),
    ],
)
def test_a_task_hands_on_its_result_as_its_fields_say(state: Any, output: Any) -> None:
    template = PathOutput.of_task(state)
    assert template.evaluate(bound(result={"r": [3]}), MOMENT) == output


def test_the_stages_can_be_looked_at_one_by_one() -> None:
    state = {"ResultSelector": {"f.$": "$.r"}, "ResultPath": "$.x", "OutputPath": "$.x.f"}
    template, bindings = PathOutput.of_task(state), bound(result={"r": 3})
    assert template.selected(bindings, MOMENT) == {"f": 3}
    assert template.combined(bindings, MOMENT) == {**INPUT, "x": {"f": 3}}
    assert template.evaluate(bindings, MOMENT) == 3


@pytest.mark.parametrize(
    ("state", "output"),
    [
        ({}, INPUT),
        ({"Result": {"x.$": "$.a"}}, {"x.$": "$.a"}),
        ({"Result": 1, "Parameters": {"x.$": "$.no"}, "ResultPath": "$.r"}, {**INPUT, "r": 1}),
        ({"Parameters": {"x.$": "$.c"}, "ResultPath": "$.r"}, {**INPUT, "r": {"x": 2}}),
        ({"InputPath": "$.a", "ResultPath": "$.r"}, {**INPUT, "r": {"b": 1}}),
        ({"InputPath": "$.a", "ResultPath": None, "OutputPath": "$.a"}, {"b": 1}),
    ],
)
def test_a_pass_hands_on_its_result_its_parameters_or_its_input(state: Any, output: Any) -> None:
    assert PathOutput.of_pass(state).evaluate(bound(), MOMENT) == output


def test_a_result_that_the_core_has_worked_out_is_not_worked_out_again() -> None:
    template = PathOutput.of_pass({"Parameters": {"id.$": "States.UUID()"}})
    assert template.evaluate(bound(result={"id": "1"}), MOMENT) == {"id": "1"}


def test_a_state_without_result_filters_its_input() -> None:
    template = PathOutput.of_input({"InputPath": "$.a", "OutputPath": "$.b"})
    assert template.evaluate(bound(), MOMENT) == 1


def test_a_catcher_puts_the_error_into_the_input_of_the_state() -> None:
    caught = {"Error": "E", "Cause": None}
    bindings = bound(errorOutput=caught)
    assert PathOutput.of_catcher({}).evaluate(bindings, MOMENT) == caught
    assert PathOutput.of_catcher({"ResultPath": None}).evaluate(bindings, MOMENT) == INPUT
    with_error = PathOutput.of_catcher({"ResultPath": "$.error"})
    assert with_error.evaluate(bindings, MOMENT) == {**INPUT, "error": caught}


def test_dollar_in_assign_is_the_selected_result() -> None:
    output = PathOutput.of_task({"ResultSelector": {"f.$": "$.r"}, "ResultPath": "$.x"})
    assign = compile_payload({"v.$": "$.f"}, output.selection)
    assert assign.evaluate(bound(result={"r": 3}), MOMENT) == {"v": 3}


@pytest.mark.parametrize(
    ("template", "cause"),
    [
        (
            EffectiveInput.of({"InputPath": "$.no"}),
            "Invalid path '$.no' : No results for path: $['no']",
        ),
        (
            PathOutput.of_input({"OutputPath": "$.no.such"}),
            "Invalid path '$.no.such' : Missing property in path $['no']",
        ),
    ],
)
def test_a_path_to_nothing_says_where_it_ended(template: Template, cause: str) -> None:
    error = refused(template, bound())
    assert (error.error, error.cause, error.is_whole) == ("States.Runtime", cause, False)


def test_a_result_path_that_does_not_fit_the_input_is_a_conflict() -> None:
    error = refused(PathOutput.of_task({"ResultPath": "$.x"}), bound("text", result=1))
    assert error.error == "States.ReferencePathConflict"
    assert error.cause == 'Unable to apply step "x" to input "text"'
    assert error.is_whole


@pytest.mark.parametrize("state", [{"ResultPath": "$.a[*]"}, {"OutputPath": "a"}])
def test_a_text_that_is_no_path_is_refused_when_it_is_compiled(state: Any) -> None:
    with pytest.raises(PathSyntaxError):
        PathOutput.of_task(state)


# -- fields that are a path to one value -----------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "value", "found"),
    [
        (wait_seconds_path("$.v", INPUT_DATA), 0, 0),
        (wait_timestamp_path("$.v", INPUT_DATA), *["2016-03-05T21:29:29.243167252Z"] * 2),
        (task_seconds_path("TimeoutSecondsPath", "$.v", INPUT_DATA), 5, 5),
        (whole_number_path("MaxItemsPath", "$.v", INPUT_DATA), "2", 2),
        (percentage_path("ToleratedFailurePercentagePath", "$.v", INPUT_DATA), "1.5", 1.5),
        (items_path("$.v", INPUT_DATA), [1], [1]),
        (whole_number_path("MaxConcurrencyPath", "$.v", INPUT_DATA), 3, 3),
        (percentage_path("ToleratedFailurePercentagePath", "$.v", INPUT_DATA), 50, 50),
        (text_path("CausePath", "$.v", INPUT_DATA), "x", "x"),
        (text_path("ErrorPath", "States.Format('{}!', $.v)", INPUT_DATA), "x", "x!"),
    ],
)
def test_a_value_that_will_do_is_given(template: Template, value: Any, found: Any) -> None:
    assert template.evaluate(bound({"v": value}), MOMENT) == found


@pytest.mark.parametrize(
    ("template", "cause"),
    [
        (
            wait_seconds_path("$.no", INPUT_DATA),
            "The SecondsPath parameter does not reference an input value: $.no",
        ),
        (
            task_seconds_path("HeartbeatSecondsPath", "$.no", INPUT_DATA),
            "Invalid path '$.no' : No results for path: $['no']",
        ),
        (
            text_path("ErrorPath", "$.no", INPUT_DATA),
            (
                "The JSONPath '$.no' specified for the field 'ErrorPath' could not be found in the "
                'input \'{"a":{"b":1},"c":2}\''
            ),
        ),
    ],
)
def test_a_field_says_in_its_own_words_that_nothing_is_there(
    template: Template, cause: str
) -> None:
    assert refused(template, bound()).cause == cause


@pytest.mark.parametrize(
    ("path", "shown"), [("$", "$"), ("$.c", "$.c"), ("$$.Execution.Input", "$.Execution.Input")]
)
def test_items_must_be_an_array(path: str, shown: str) -> None:
    error = refused(items_path(path, INPUT_DATA), bound())
    assert error.cause == f'Reference path "{shown}" must point to array.'
    assert error.is_whole


def test_items_that_are_not_there_are_a_conflict() -> None:
    error = refused(items_path("$.a.items", INPUT_DATA), bound())
    assert error.error == "States.ReferencePathConflict"
    assert error.cause == 'Unable to apply step "items" to input {"a":{"b":1},"c":2}'
    assert error.is_whole
