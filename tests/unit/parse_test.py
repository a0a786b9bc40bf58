"""Definitions that do not validate: every problem at once, each at its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.asl.parse import DefinitionError, definition_hash, parse_definition
from holdfast.asl.program import Parallel, Task
from holdfast.limits import NAME_CHARACTERS_MAX
from tests.builders import Machine, ask, call, machine
from tests.unit.core_kit import one

SUCCEED_STATE = {"Type": "Succeed"}
SUCCEED = {"StartAt": "i", "States": {"i": SUCCEED_STATE}}
CHOICE = {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "it"}]}


def problems(document: Any) -> dict[str, str]:
    with pytest.raises(DefinitionError) as caught:
        parse_definition(document)
    assert caught.value.code == "HF100"
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_definition_becomes_a_program_that_knows_its_states() -> None:
    branch = {"StartAt": "b", "States": {"b": call("work", TimeoutSeconds=5)}}
    program = parse_definition(one({"Type": "Parallel", "Branches": [branch]}, TimeoutSeconds=60))
    parallel, task = program.states["it"], program.states["b"]

    assert (program.start_at, program.timeout_seconds) == ("it", 60)
    assert isinstance(parallel, Parallel)
    assert parallel.branches == ("b",)
    assert isinstance(task, Task)
    assert (task.kind, task.target) == ("task", "work")


def test_the_hash_of_a_definition_is_that_of_its_text_without_blanks() -> None:
    document = one({"Type": "Pass"})

    assert definition_hash(document) == definition_hash(json.loads(json.dumps(document, indent=4)))
    assert definition_hash(document) != definition_hash(one({"Type": "Succeed"}))


@pytest.mark.parametrize("document", [None, [], "text", 5])
def test_what_is_no_object_is_no_definition(document: Any) -> None:
    assert "expected an object" in problems(document)[""]


def test_every_problem_is_reported_at_once() -> None:
    document = {
        "StartAt": "nowhere",
        "TimeoutSeconds": 0,
        "Color": "red",
        "States": {"a": {"Type": "Pass"}, "b": {"Type": "Sing"}, "c": []},
    }

    assert set(problems(document)) == {
        "/Color",
        "/QueryLanguage",
        "/StartAt",
        "/States/a",
        "/States/b/Type",
        "/States/c",
        "/TimeoutSeconds",
    }


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"Type": "Pass", "Nxt": "x"}, "/Nxt"),
        ({"Type": "Pass", "QueryLanguage": "JSONPath"}, "/QueryLanguage"),
        ({"Type": "Parallel", "Branches": [{**SUCCEED, "Colour": 1}]}, "/Branches/0/Colour"),
        ({"Type": "Map", "ItemProcessor": {**SUCCEED, "Colour": 1}}, "/ItemProcessor/Colour"),
        ({"Type": "Pass", "Next": "nowhere", "End": False}, "/Next"),
        ({"Type": "Pass", "Next": "it", "End": True}, ""),
        ({"Type": "Pass", "Assign": 5}, "/Assign"),
        ({"Type": "Pass", "Output": "{% ( %}"}, "/Output"),
        ({"Type": "Wait"}, ""),
        ({"Type": "Wait", "Seconds": 1, "Timestamp": "x"}, ""),
        ({"Type": "Choice"}, "/Choices"),
        ({"Type": "Choice", "Choices": [5]}, "/Choices/0"),
        ({"Type": "Choice", "Choices": [{"Condition": "{% true %}"}]}, "/Choices/0/Next"),
        ({**CHOICE, "Default": "nowhere"}, "/Default"),
        (
            {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "no"}]},
            "/Choices/0/Next",
        ),
        ({"Type": "Task"}, "/Resource"),
        ({"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage"}, "/Resource"),
        ({"Type": "Task", "Resource": "holdfast:task:"}, "/Resource"),
        ({"Type": "Parallel", "Branches": []}, "/Branches"),
        ({"Type": "Parallel", "Branches": [5]}, "/Branches/0"),
        ({"Type": "Map"}, "/ItemProcessor"),
        (
            {
                "Type": "Map",
                "ItemProcessor": {**SUCCEED, "ProcessorConfig": {"Mode": "DISTRIBUTED"}},
            },
            "/ItemProcessor/ProcessorConfig",
        ),
        (call("x", Retry="often"), "/Retry"),
        (call("x", Retry=[{}]), "/Retry/0/ErrorEquals"),
        (call("x", Retry=[{"ErrorEquals": [5]}]), "/Retry/0/ErrorEquals"),
        (
            call("x", Retry=[{"ErrorEquals": ["A"], "IntervalSeconds": 0}]),
            "/Retry/0/IntervalSeconds",
        ),
        (call("x", Retry=[{"ErrorEquals": ["A"], "MaxAttempts": -1}]), "/Retry/0/MaxAttempts"),
        (call("x", Retry=[{"ErrorEquals": ["A"], "MaxAttempts": True}]), "/Retry/0/MaxAttempts"),
        (call("x", Retry=[{"ErrorEquals": ["A"], "BackoffRate": 0.5}]), "/Retry/0/BackoffRate"),
        (call("x", Retry=[{"ErrorEquals": ["A"], "BackoffRate": True}]), "/Retry/0/BackoffRate"),
        (
            call("x", Retry=[{"ErrorEquals": ["A"], "MaxDelaySeconds": 0}]),
            "/Retry/0/MaxDelaySeconds",
        ),
        (
            call("x", Retry=[{"ErrorEquals": ["A"], "JitterStrategy": "HALF"}]),
            "/Retry/0/JitterStrategy",
        ),
        (call("x", Retry=[{"ErrorEquals": ["A"], "Often": 1}]), "/Retry/0/Often"),
        (call("x", Retry=[{"ErrorEquals": ["States.ALL", "A"]}]), "/Retry/0"),
        (
            call("x", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "it"}] * 2),
            "/Catch/0",
        ),
        (call("x", Catch=[{"ErrorEquals": ["A"]}]), "/Catch/0/Next"),
        (call("x", Catch=[{"ErrorEquals": ["A"], "Next": "no"}]), "/Catch/0/Next"),
    ],
)
def test_a_problem_in_a_state_is_named_with_its_place(state: Any, path: str) -> None:
    document = machine({"it": {"End": True, **state} if state["Type"] != "Choice" else state})

    assert f"/States/it{path}" in problems(document)


def test_a_state_name_has_its_length_and_is_used_once() -> None:
    long = "x" * (NAME_CHARACTERS_MAX + 1)
    branch = {"StartAt": "it", "States": {"it": {"Type": "Succeed"}}}
    document = machine(
        {
            "it": {"Type": "Parallel", "Branches": [branch, branch], "Next": long},
            long: {"Type": "Succeed"},
        }
    )
    found = problems(document)

    assert "characters" in found[f"/States/{long}"]
    assert "twice" in found["/States/it/Branches/1/States/it"]


def test_a_target_in_another_branch_is_no_target() -> None:
    branch = {"StartAt": "b", "States": {"b": {"Type": "Pass", "Next": "it"}}}
    document = one({"Type": "Parallel", "Branches": [branch]})

    assert "/States/it/Branches/0/States/b/Next" in problems(document)


# -- anything at all -------------------------------------------------------------------------------

SAMPLE = machine(
    {
        "a": call("work", "b", Retry=[{"ErrorEquals": ["A"]}], Arguments={"x": "{% 1 %}"}),
        "b": {**CHOICE, "Choices": [{"Condition": "{% true %}", "Next": "c"}], "Default": "d"},
        "c": {"Type": "Parallel", "Branches": [SUCCEED], "Next": "d"},
        "d": {"Type": "Map", "ItemProcessor": {"StartAt": "e", "States": {"e": SUCCEED_STATE}}}
        | {"Next": "f"},
        "f": ask("g", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "g"}]),
        "g": {"Type": "Wait", "Seconds": 1, "Next": "h"},
        "h": {"Type": "Fail", "Error": "E"},
    }
)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, 1.5, True, "", "x", "{% ( %}", [], [None], {}, {"a": 1}, [[]]]
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in the document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    found = [(value, key) for key, _ in pairs]
    below = value.values() if isinstance(value, dict) else value
    return found + [
        place for item in below if isinstance(item, dict | list) for place in places(item)
    ]


def test_the_sample_of_the_next_test_is_valid() -> None:
    parse_definition(SAMPLE)


@settings(max_examples=300, deadline=None, database=None, derandomize=True)
@given(st.integers(0, 10_000), ODD)
def test_a_definition_with_anything_anywhere_is_accepted_or_refused_with_a_code(
    place: int, odd: Any
) -> None:
    document: Machine = json.loads(json.dumps(SAMPLE))
    found = places(document)
    container, key = found[place % len(found)]
    container[key] = odd
    try:
        parse_definition(document)
    except DefinitionError as error:
        assert error.problems
