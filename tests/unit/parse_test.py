"""Definitions that do not validate: every problem at once, each at its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.parsing.parse import DefinitionError, definition_hash, parse_definition
from holdfast.asl.program import (
    ChoiceState,
    FailState,
    MapState,
    ParallelState,
    PassState,
    Retrier,
    TaskState,
    WaitState,
)
from holdfast.asl.resources import read_resource
from holdfast.asl.validation.validate import diagnose
from holdfast.limits import NAME_CHARACTERS_MAX
from tests.builders import Machine, ask, call, machine
from tests.thorough import examples
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
    assert isinstance(parallel, ParallelState)
    assert parallel.branches == ("b",)
    assert isinstance(task, TaskState)
    assert (task.kind, task.target) == ("task", "work")


def test_the_hash_of_a_definition_is_that_of_its_text_without_blanks() -> None:
    document = one({"Type": "Pass"})

    assert definition_hash(document) == definition_hash(json.loads(json.dumps(document, indent=4)))
    assert definition_hash(document) != definition_hash(one({"Type": "Succeed"}))


@pytest.mark.parametrize("document", [None, [], "text", 5])
def test_a_document_that_is_no_object_is_no_definition(document: Any) -> None:
    assert "must be a valid JSON object" in problems(document)[""]


def test_every_problem_is_reported_at_once() -> None:
    document = {
        "StartAt": "nowhere",
        "TimeoutSeconds": -1,
        "Color": "red",
        "States": {"a": {"Type": "Pass"}, "b": {"Type": "Sing"}, "c": []},
    }

    assert set(problems(document)) == {
        "/",
        "/StartAt",
        "/States/a",
        "/States/b/Type",
        "/States/c",
        "/TimeoutSeconds",
    }


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"Type": "Pass", "Nxt": "x"}, ""),
        ({"Type": "Pass", "QueryLanguage": "JSONPath"}, ""),
        ({"Type": "Parallel", "Branches": [{**SUCCEED, "Colour": 1}]}, "/Branches[0]"),
        ({"Type": "Map", "ItemProcessor": {**SUCCEED, "Colour": 1}}, "/ItemProcessor"),
        ({"Type": "Pass", "Next": "nowhere", "End": False}, "/Next"),
        ({"Type": "Pass", "Next": "it", "End": True}, ""),
        ({"Type": "Pass", "Assign": 5}, "/Assign"),
        ({"Type": "Pass", "Output": "{% ( %}"}, "/Output"),
        ({"Type": "Wait"}, ""),
        ({"Type": "Wait", "Seconds": 1, "Timestamp": "x"}, ""),
        ({"Type": "Choice"}, ""),
        ({"Type": "Choice", "Choices": [5]}, "/Choices[0]"),
        ({"Type": "Choice", "Choices": [{"Condition": "{% true %}"}]}, "/Choices[0]"),
        ({**CHOICE, "Default": "nowhere"}, "/Default"),
        (
            {"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "no"}]},
            "/Choices[0]/Next",
        ),
        ({"Type": "Task"}, ""),
        ({"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMassage"}, "/Resource"),
        ({"Type": "Task", "Resource": "holdfast:task:"}, "/Resource"),
        ({"Type": "Parallel", "Branches": []}, "/Branches"),
        ({"Type": "Parallel", "Branches": [5]}, "/Branches[0]"),
        ({"Type": "Map"}, ""),
        (
            {
                "Type": "Map",
                "ItemProcessor": {**SUCCEED, "ProcessorConfig": {"Mode": "DISTRIBUTED"}},
            },
            "/ItemProcessor/ProcessorConfig",
        ),
        (call("x", Retry="often"), "/Retry"),
        (call("x", Retry=[{}]), "/Retry[0]"),
        (call("x", Retry=[{"ErrorEquals": [5]}]), "/Retry[0]/ErrorEquals[0]"),
        (
            call("x", Retry=[{"ErrorEquals": ["A"], "IntervalSeconds": -1}]),
            "/Retry[0]/IntervalSeconds",
        ),
        (call("x", Retry=[{"ErrorEquals": ["A"], "MaxAttempts": -1}]), "/Retry[0]/MaxAttempts"),
        (call("x", Retry=[{"ErrorEquals": ["A"], "MaxAttempts": True}]), "/Retry[0]/MaxAttempts"),
        (call("x", Retry=[{"ErrorEquals": ["A"], "BackoffRate": 0.5}]), "/Retry[0]/BackoffRate"),
        (call("x", Retry=[{"ErrorEquals": ["A"], "BackoffRate": True}]), "/Retry[0]/BackoffRate"),
        (
            call("x", Retry=[{"ErrorEquals": ["A"], "MaxDelaySeconds": 0}]),
            "/Retry[0]/MaxDelaySeconds",
        ),
        (
            call("x", Retry=[{"ErrorEquals": ["A"], "JitterStrategy": "HALF"}]),
            "/Retry[0]/JitterStrategy",
        ),
        (call("x", Retry=[{"ErrorEquals": ["A"], "Often": 1}]), "/Retry[0]"),
        (call("x", Retry=[{"ErrorEquals": ["States.ALL", "A"]}]), "/Retry[0]/ErrorEquals[0]"),
        (
            call("x", Catch=[{"ErrorEquals": ["States.ALL"], "Next": "it"}] * 2),
            "/Catch[0]/ErrorEquals[0]",
        ),
        (call("x", Catch=[{"ErrorEquals": ["A"]}]), "/Catch[0]"),
        (call("x", Catch=[{"ErrorEquals": ["A"], "Next": "no"}]), "/Catch[0]/Next"),
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

    assert "80-character limit" in found[f"/States/{long}"]
    assert "Duplicate" in found["/States/it/Branches[1]/States/it"]


def test_a_target_in_another_branch_is_no_target() -> None:
    branch = {"StartAt": "b", "States": {"b": {"Type": "Pass", "Next": "it"}}}
    document = one({"Type": "Parallel", "Branches": [branch]})

    assert "/States/it/Branches[0]/States/b/Next" in problems(document)


def test_the_undo_of_a_stop_is_read_from_the_extension() -> None:
    undo = {
        "States": ["it"],
        "Begin": "b",
        "End": "e",
        "Assign": {"x": "{% $states.errorOutput %}"},
    }
    states = {"it": {"Type": "Succeed"}, "b": {"Type": "Pass", "Next": "e"}, "e": SUCCEED_STATE}
    document = machine(states, Holdfast={"Undo": [undo]})
    (found,) = parse_definition(document).undos

    assert (found.states, found.begin, found.end) == (frozenset({"it"}), "b", "e")
    assert found.assign is not None
    assert diagnose(document) == ()
    assert set(problems(machine(states, Holdfast={"Undo": [{**undo, "Begin": "no"}, {}]}))) == {
        "/Holdfast/Undo[0]/Begin",
        "/Holdfast/Undo[1]",
    }


def test_an_undo_may_branch() -> None:
    """A Choice without a default leads nowhere else; where a Catch leads is outside."""
    undo = {"States": ["it"], "Begin": "pick", "End": "e"}
    pick = {**CHOICE, "Choices": [{"Condition": "{% true %}", "Next": "work"}]}
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "outside"}]
    states = {
        "it": SUCCEED_STATE,
        "pick": pick,
        "work": call("work", "e", Catch=catch),
        "e": SUCCEED_STATE,
        "outside": SUCCEED_STATE,
    }
    (found,) = parse_definition(machine(states, Holdfast={"Undo": [undo]})).undos

    assert found.own == frozenset({"pick", "work"})


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


@settings(max_examples=examples(300), deadline=None, database=None, derandomize=True)
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


# -- JSONPath --------------------------------------------------------------------------------------

FUNCTION = "arn:aws:lambda:eu-west-1:111111111111:function:f"
MOMENT = EvaluationMoment(now_ms=0, draw=lambda: 0.5)
PATHS: Machine = {
    "StartAt": "t",
    "TimeoutSeconds": 60,
    "States": {
        "t": {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "Parameters": {"a.$": "$.a", "token.$": "$$.Task.Token"},
            "ResultSelector": {"b.$": "$.b"},
            "ResultPath": "$.c",
            "Assign": {"v.$": "$.b"},
            "TimeoutSecondsPath": "$.seconds",
            "Credentials": {"RoleArn.$": "$.role"},
            "Retry": [{"ErrorEquals": ["A"]}, {"ErrorEquals": ["B"], "MaxDelaySeconds": 9}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "c"}],
            "Next": "c",
        },
        "c": {
            "Type": "Choice",
            "InputPath": "$.x",
            "Choices": [
                {
                    "And": [{"Variable": "$.n", "NumericLessThan": 3}],
                    "Assign": {"w.$": "$.n"},
                    "Next": "w",
                }
            ],
            "Default": "p",
        },
        "w": {"Type": "Wait", "SecondsPath": "$.n", "Next": "p"},
        "p": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": "l",
                    "States": {"l": {"Type": "Task", "Resource": FUNCTION, "End": True}},
                }
            ],
            "Next": "m",
        },
        "m": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "Parameters": {"i.$": "$$.Map.Item.Value"},
            "MaxConcurrency": 2,
            "Iterator": {
                "StartAt": "j",
                "States": {"j": {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% 1 %}"}},
            },
            "Next": "d",
        },
        "d": {
            "Type": "Map",
            "Label": "label",
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:listObjectsV2",
                "Parameters": {"Bucket.$": "$.bucket"},
                "ReaderConfig": {"InputType": "JSON", "MaxItemsPath": "$.n"},
            },
            "ItemBatcher": {"MaxItemsPerBatch": 3, "BatchInput": {"k.$": "$.n"}},
            "ResultWriter": {
                "Resource": "arn:aws:states:::s3:putObject",
                "Parameters": {"Bucket": "b"},
                "WriterConfig": {"OutputType": "JSON", "Transformation": "NONE"},
            },
            "ToleratedFailurePercentagePath": "$.n",
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
                "StartAt": "s",
                "States": {"s": {"Type": "Succeed"}},
            },
            "Next": "f",
        },
        "f": {"Type": "Fail", "ErrorPath": "$.e", "Cause": "because"},
    },
}
PATHS["States"]["m"]["Iterator"]["States"]["j"]["End"] = True


def value(template: Any, data: Any, **more: Any) -> Any:
    states = {"input": data, "context": {"Task": {"Token": "t"}, "Map": {"Item": {"Value": 7}}}}
    return template.evaluate({"states": {**states, **more}}, MOMENT)


def test_the_fields_of_jsonpath_become_templates() -> None:
    states = parse_definition(PATHS).states
    task, choice, wait, fail = states["t"], states["c"], states["w"], states["f"]
    assert isinstance(task, TaskState)
    assert isinstance(choice, ChoiceState)
    assert isinstance(wait, WaitState)
    assert isinstance(fail, FailState)

    assert (task.kind, task.target) == ("callback", "lambda:invoke")
    assert value(task.arguments, {"a": 1}) == {"a": 1, "token": "t"}
    assert value(task.output, {"a": 1}, result={"b": 2}) == {"a": 1, "c": {"b": 2}}
    assert value(task.assign, {"a": 1}, result={"b": 2}) == {"v": 2}
    assert value(task.timeout_seconds, {"seconds": 5}) == 5
    assert value(task.credentials, {"role": "arn"}) == {"RoleArn": "arn"}
    assert value(task.catch[0].output, {"a": 1}, errorOutput={"Error": "E"}) == {
        "a": 1,
        "error": {"Error": "E"},
    }
    assert task.retry[0] == Retrier(("A",), 1, 3, 2.0, None, has_full_jitter=False)
    assert value(choice.rules[0].condition, {"x": {"n": 2}}) is True
    assert value(choice.rules[0].assign, {"x": {"n": 2}}) == {"w": 2}
    assert value(choice.output, {"x": {"n": 2}}) == {"n": 2}
    assert value(wait.seconds, {"n": 4}) == 4
    assert wait.output is None
    assert (value(fail.error, {"e": "E"}), value(fail.cause, {})) == ("E", "because")


def test_an_old_map_is_read_by_its_old_names() -> None:
    states = parse_definition(PATHS).states
    old, inner, branch = states["m"], states["j"], states["l"]
    assert isinstance(old, MapState)
    assert isinstance(inner, PassState)
    assert isinstance(branch, TaskState)

    assert old.processor == "j"
    assert old.run is None
    assert value(old.items, {"items": [1]}) == [1]
    assert value(old.item_selector, {}) == {"i": 7}
    assert value(old.concurrency_max, {}) == 2
    assert value(inner.output, {}) == 1
    assert (branch.kind, branch.target) == ("lambda", FUNCTION)


def test_a_reader_may_read_as_many_items_as_there_are() -> None:
    read = {"Resource": "arn:aws:states:::s3:getObject", "ReaderConfig": {"InputType": "JSON"}}
    processor = {**SUCCEED, "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}}
    state = {"Type": "Map", "ItemReader": read, "ItemProcessor": processor}
    found = parse_definition(one(state, QueryLanguage="JSONPath")).states["it"]
    assert isinstance(found, MapState)
    assert found.run is not None
    assert found.run.reader is not None

    assert value(found.run.reader.config, {}) == {"InputType": "JSON"}


def test_a_distributed_map_knows_its_reader_batches_and_writer() -> None:
    state = parse_definition(PATHS).states["d"]
    assert isinstance(state, MapState)
    run = state.run
    assert run is not None
    assert run.reader is not None
    assert run.batcher is not None
    assert run.writer is not None

    assert (run.label, run.execution_type, run.reader.target) == (
        "label",
        "EXPRESS",
        "s3:listObjectsV2",
    )
    assert value(run.reader.arguments, {"bucket": "b"}) == {"Bucket": "b"}
    assert value(run.reader.config, {"n": 9}) == {"InputType": "JSON", "MaxItems": 9}
    assert value(run.batcher.items_max, {}) == 3
    assert run.batcher.bytes_max is None
    assert value(run.batcher.input, {"n": 9}) == {"k": 9}
    assert run.writer.config == {"OutputType": "JSON", "Transformation": "NONE"}
    assert value(run.tolerated_percentage, {"n": 50}) == 50


@pytest.mark.parametrize(
    ("resource", "kind", "target"),
    [
        ("holdfast:pure:add", "pure", "add"),
        ("holdfast:ask.waitForTaskToken", "ask", ""),
        ("holdfast:workflow:ship", "sync", "workflow:ship"),
        (FUNCTION, "lambda", FUNCTION),
        (f"{FUNCTION}:$LATEST", "lambda", f"{FUNCTION}:$LATEST"),
        ("arn:aws-cn:states:::sqs:sendMessage", "service", "sqs:sendMessage"),
        ("arn:aws:states:::aws-sdk:s3:getObject", "service", "aws-sdk:s3:getObject"),
        (
            "arn:aws:states:::aws-sdk:s3:getObject.waitForTaskToken",
            "callback",
            "aws-sdk:s3:getObject",
        ),
        ("arn:aws:states:::batch:submitJob.sync", "sync", "batch:submitJob"),
        ("arn:aws:states:::states:startExecution.sync:2", "sync", "states:startExecution"),
        (
            "arn:aws:states:eu-west-1:111111111111:activity:a",
            "activity",
            "arn:aws:states:eu-west-1:111111111111:activity:a",
        ),
    ],
)
def test_a_resource_is_a_kind_and_a_target(resource: str, kind: str, target: str) -> None:
    found = read_resource(resource)

    assert found is not None
    assert (found.kind, found.target) == (kind, target)


@pytest.mark.parametrize(
    "resource",
    [
        "arn:aws:states:::sqs:sendMessage.sync",
        "arn:aws:states:::batch:submitJob.sync:2",
        "arn:aws:states:::dynamodb:putItem.waitForTaskToken",
        "arn:aws:states:::aws-sdk:s3",
        "arn:aws:s3:::bucket",
        "holdfast:song:x",
        "",
    ],
)
def test_a_pattern_that_a_service_does_not_have_is_nothing(resource: str) -> None:
    assert read_resource(resource) is None


@settings(max_examples=examples(400), deadline=None, database=None, derandomize=True)
@given(
    st.integers(0, 10_000), ODD | st.sampled_from(["$.a['b','c']", "$..a", "$x", "States.UUID("])
)
def test_jsonpath_with_anything_anywhere_is_accepted_or_refused_with_a_code(
    place: int, odd: Any
) -> None:
    document: Machine = json.loads(json.dumps(PATHS))
    found = places(document)
    container, key = found[place % len(found)]
    container[key] = odd
    try:
        parse_definition(document)
    except DefinitionError as error:
        assert error.problems
