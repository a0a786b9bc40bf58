"""TestState by its operation: the report on a state, and the refusals. Nothing is performed but the
clock and, without a mock, the one call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.asl.jsonata.jsonata import compile_expression
from holdfast.integrations import item_reader
from holdfast.runtime.driver import run
from holdfast.runtime.effects import (
    Clock,
    Effect,
    HttpExchange,
    RunTask,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
)
from holdfast.stepfunctions.arns import ArnRegion
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import StatesFault
from holdfast.stepfunctions.trial import trial
from tests.thorough import examples
from tests.unit.s3_kit import Bucket
from tests.unit.states_world import Office

NOW_MS = 1_790_000_000_000
ROLE = "arn:aws:iam::123456789012:role/tester"
INVOKE = "arn:aws:states:::lambda:invoke"
COMPUTED = "{% $states.input %}"


class World:
    """Answers the clock and the calls; `called` are the calls."""

    def __init__(self, answer: TaskSucceeded | TaskFailed | None = None) -> None:
        self.called: list[RunTask] = []
        self._answer = answer

    def perform(self, effect: Effect) -> Any:
        match effect:
            case Clock():
                return NOW_MS
            case RunTask():
                self.called.append(effect)
                return self._answer
            case _:
                raise AssertionError(effect)


NOTHING: Any = None
PLACE = ArnRegion("eu-central-1", "123456789012")
#: That of a local stack.
SERVICE = Service(NOTHING, NOTHING, "tenant", PLACE, None, may_reveal_secrets=True)


def tried(
    state: Mapping[str, Any],
    world: World | None = None,
    service: Service = SERVICE,
    **request: Any,
) -> dict[str, Any]:
    """Return the response, the texts that hold JSON read."""
    for name in ("input", "variables", "context"):
        if name in request:
            request[name] = json.dumps(request[name])
    request["definition"] = json.dumps(state)
    handler = trial.test_state(service, request, bytes(range(16)))
    response: dict[str, Any] = run(handler, (world or World()).perform)
    if "output" in response:
        response["output"] = json.loads(response["output"])
    if "inspectionData" in response:
        response["inspectionData"] = {
            name: json.loads(value) if isinstance(value, str) else value
            for name, value in response["inspectionData"].items()
        }
    return response


def refusal(state: Mapping[str, Any], **request: Any) -> tuple[str, str]:
    with pytest.raises(StatesFault) as raised:
        tried(state, **request)
    return raised.value.code, raised.value.message


def a_task(**fields: Any) -> dict[str, Any]:
    common = {"Type": "Task", "QueryLanguage": "JSONata", "End": True}
    return {**common, "Resource": INVOKE, "Arguments": {"FunctionName": "f"}, **fields}


def mocked(result: Any) -> dict[str, str]:
    return {"result": json.dumps(result)}


# -- reported fields -------------------------------------------------------------------------------


def test_the_result_names_the_next_state() -> None:
    response = tried({"Type": "Pass", "Next": "there"}, input={"a": 1})
    assert response == {"status": "SUCCEEDED", "output": {"a": 1}, "nextState": "there"}


def test_a_state_may_be_its_own_next() -> None:
    response = tried({"Type": "Pass", "Next": "StateName"}, input=1)
    assert response["nextState"] == "StateName"


def test_an_input_that_is_not_given_is_an_empty_object() -> None:
    assert tried({"Type": "Succeed"}) == {"status": "SUCCEEDED", "output": {}}


def test_a_wait_is_not_waited_for() -> None:
    response = tried({"Type": "Wait", "Seconds": 100_000, "Next": "later"}, input=1)
    assert response == {"status": "SUCCEEDED", "output": 1, "nextState": "later"}


def test_a_fail_state_returns_its_error() -> None:
    response = tried({"Type": "Fail", "Error": "E", "Cause": "c"}, inspectionLevel="DEBUG")
    assert response == {
        "status": "FAILED",
        "error": "E",
        "cause": "c",
        "inspectionData": {"input": {}, "afterInputPath": {}},
    }


def test_the_stages_of_a_pass_state_are_shown() -> None:
    state = {
        "Type": "Pass",
        "InputPath": "$.a",
        "Parameters": {"c.$": "$.b"},
        "ResultPath": "$.r",
        "End": True,
    }
    shown = tried(state, input={"a": {"b": 1}}, inspectionLevel="DEBUG")["inspectionData"]
    assert shown == {
        "input": {"a": {"b": 1}},
        "afterInputPath": {"b": 1},
        "afterParameters": {"c": 1},
        "afterResultSelector": {"c": 1},
        "afterResultPath": {"a": {"b": 1}, "r": {"c": 1}},
    }


def test_a_jsonata_task_shows_arguments_and_result() -> None:
    state = a_task(
        Arguments={"FunctionName": "{% $states.input.f %}"}, Output="{% $states.result %}"
    )
    shown = tried(
        state, input={"f": "fun"}, mock=mocked({"Payload": "1"}), inspectionLevel="TRACE"
    )["inspectionData"]
    assert shown == {
        "input": {"f": "fun"},
        "afterArguments": {"FunctionName": "fun"},
        "result": {"Payload": "1"},
    }


def test_variables_are_visible_to_the_state_and_returned_with_its_assignments() -> None:
    state = {
        "Type": "Pass",
        "QueryLanguage": "JSONata",
        "Assign": {"b": "{% $a + 1 %}"},
        "End": True,
    }
    response = tried(state, variables={"a": 1}, inspectionLevel="DEBUG")
    assert response["inspectionData"]["variables"] == {"a": 1, "b": 2}


def test_a_failing_expression_is_reported_without_a_place_in_a_history() -> None:
    state = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% $x %}", "End": True}
    response = tried(state)
    assert response["status"] == "FAILED"
    assert response["error"] == "States.QueryEvaluationError"
    assert response["cause"].startswith("The JSONata expression '$x'")


# -- calls and mocks -------------------------------------------------------------------------------


def test_without_a_mock_the_call_is_made() -> None:
    world = World(TaskSucceeded({"Payload": 7}))
    state = a_task(Arguments={"FunctionName": "f"}, Output="{% $states.result.Payload %}")
    assert tried(state, world, roleArn=ROLE)["output"] == 7
    assert [(call.kind, call.name, call.arguments) for call in world.called] == [
        ("service", "lambda:invoke", {"FunctionName": "f"})
    ]


def test_a_call_that_fails_is_caught_as_in_an_execution() -> None:
    world = World(TaskFailed("Boom", "bang"))
    state = a_task(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "rescue"}])
    assert tried(state, world, roleArn=ROLE) == {
        "status": "CAUGHT_ERROR",
        "error": "Boom",
        "cause": "bang",
        "output": {"Error": "Boom", "Cause": "bang"},
        "nextState": "rescue",
    }


def test_a_retry_has_its_delay_and_a_used_up_one_only_its_place() -> None:
    retry = {"ErrorEquals": ["E"], "IntervalSeconds": 2, "BackoffRate": 3, "MaxAttempts": 2}
    state = a_task(Retry=[{"ErrorEquals": ["other"]}, retry])
    request: dict[str, Any] = {"mock": {"errorOutput": {"error": "E"}}, "inspectionLevel": "DEBUG"}
    again = tried(state, stateConfiguration={"retrierRetryCount": 1}, **request)
    assert again["status"] == "RETRIABLE"
    details = again["inspectionData"]["errorDetails"]
    assert details == {"retryIndex": 1, "retryBackoffIntervalSeconds": 6}
    over = tried(state, stateConfiguration={"retrierRetryCount": 2}, **request)
    assert over["status"] == "FAILED"
    assert over["inspectionData"]["errorDetails"] == {"retryIndex": 1}


def test_a_mocked_result_has_to_be_a_possible_answer_of_the_service() -> None:
    state = a_task()
    wrong = mocked({"StatusCode": "200"})
    assert refusal(state, mock=wrong) == (
        "ValidationException",
        "Mock result schema validation error: Field 'StatusCode' must be a number",
    )
    assert tried(state, mock={**wrong, "fieldValidationMode": "NONE"})["status"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("action", "field"),
    [
        ("aws-sdk:costexplorer:getCostAndUsage", "ResultsByTime"),
        ("aws-sdk:elasticloadbalancing:describeLoadBalancers", "LoadBalancerDescriptions"),
        ("aws-sdk:cloudwatchlogs:describeLogGroups", "LogGroups"),
        ("aws-sdk:iotdataplane:listNamedShadowsForThing", "Results"),
        ("emr-containers:startJobRun", "Id"),
    ],
)
def test_a_mocked_result_is_checked_by_the_service_of_the_java_sdks_name(
    action: str, field: str
) -> None:
    state = a_task(Resource=f"arn:aws:states:::{action}", Arguments=COMPUTED)
    code, message = refusal(state, mock=mocked({field: 5}))
    assert code == "ValidationException"
    assert message.startswith(f"Mock result schema validation error: Field '{field}' must be a")


@pytest.mark.parametrize(
    ("resource", "result", "field"),
    [
        ("lambda:invoke", {"Payload": {"a": 1}}, "Payload"),
        ("states:startExecution.sync:2", {"Output": {"a": 1}}, "Output"),
        ("states:startExecution.sync:2", {"StartDate": 1764103483}, "StartDate"),
    ],
)
def test_a_field_has_the_type_of_the_actions_model_also_where_a_task_returns_another(
    resource: str, result: dict[str, Any], field: str
) -> None:
    state = a_task(Resource=f"arn:aws:states:::{resource}", Arguments=COMPUTED)
    mock = {**mocked(result), "fieldValidationMode": "PRESENT"}
    assert refusal(state, mock=mock) == (
        "ValidationException",
        f"Mock result schema validation error: Field '{field}' must be a string",
    )


def test_a_required_field_may_be_missing_where_only_the_present_are_validated() -> None:
    state = a_task(Resource="arn:aws:states:::states:startExecution", Arguments=COMPUTED)
    assert refusal(state, mock=mocked({})) == (
        "ValidationException",
        "Mock result schema validation error: Required field 'ExecutionArn' is missing",
    )
    lenient = {**mocked({}), "fieldValidationMode": "PRESENT"}
    assert tried(state, mock=lenient)["output"] == {}


EXCHANGE = HttpExchange(
    method="POST",
    url="https://example.com/x?q=1",
    headers={"a": "b", "user-agent": "robot"},
    body='{"k":1}',
    status=404,
    response_headers={"h": "v, w"},
    response_body="no",
)


def an_http_task(**fields: Any) -> dict[str, Any]:
    arguments = {"ApiEndpoint": "https://example.com/x", "Method": "POST"}
    return a_task(Resource="arn:aws:states:::http:invoke", Arguments=arguments, **fields)


@pytest.mark.parametrize(
    "result",
    [
        TaskSucceeded({"StatusCode": 404}, exchange=EXCHANGE),
        TaskFailed("States.Http.StatusCode.404", "no", exchange=EXCHANGE),
    ],
)
def test_an_http_task_shows_its_request_and_response(result: TaskSucceeded | TaskFailed) -> None:
    world = World(result)
    shown = tried(an_http_task(), world, roleArn=ROLE, inspectionLevel="TRACE")["inspectionData"]
    assert shown["request"] == {
        "protocol": "https",
        "method": "POST",
        "url": "https://example.com/x?q=1",
        "headers": "[a: b, user-agent: robot]",
        "body": '{"k":1}',
    }
    assert shown["response"] == {
        "protocol": "https",
        "statusCode": "404",
        "statusMessage": "Not Found",
        "headers": "[h: v, w]",
        "body": "no",
    }


@pytest.mark.parametrize(("status", "phrase"), [(200, "OK"), (299, ""), (None, None)])
def test_a_request_without_an_answer_is_shown_alone(status: int | None, phrase: str | None) -> None:
    exchange = replace(EXCHANGE, status=status, body=None)
    world = World(TaskFailed("States.Http.Socket", "gone", exchange=exchange))
    shown = tried(an_http_task(), world, roleArn=ROLE, inspectionLevel="TRACE")["inspectionData"]
    assert "body" not in shown["request"]
    assert shown.get("response", {}).get("statusMessage") == phrase


@pytest.mark.parametrize(
    ("level", "reveals", "trace"),
    [
        ("INFO", False, None),
        ("DEBUG", True, None),
        ("TRACE", False, "PUBLIC"),
        ("TRACE", True, "ALL"),
    ],
)
def test_only_a_trace_asks_for_the_request(level: str, *, reveals: bool, trace: str | None) -> None:
    world = World(TaskSucceeded({}))
    request: dict[str, Any] = {"inspectionLevel": level, "revealSecrets": reveals}
    shown = tried(an_http_task(), world, roleArn=ROLE, **request).get("inspectionData", {})
    assert [call.trace for call in world.called] == [trace]
    assert "request" not in shown


def test_a_stack_does_not_reveal_secrets() -> None:
    stack = replace(SERVICE, may_reveal_secrets=False)
    with pytest.raises(StatesFault) as raised:
        tried(an_http_task(), service=stack, roleArn=ROLE, revealSecrets=True)
    assert raised.value.code == "AccessDeniedException"
    assert "is not authorized to perform: states:RevealSecrets" in raised.value.message


# -- Map and Parallel ------------------------------------------------------------------------------


def a_map(**fields: Any) -> dict[str, Any]:
    inner = {"StartAt": "In", "States": {"In": {"Type": "Pass", "End": True}}}
    return {
        "Type": "Map",
        "QueryLanguage": "JSONata",
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            **inner,
        },
        "End": True,
        **fields,
    }


def test_a_map_shows_the_input_of_each_iteration() -> None:
    state = a_map(
        Items="{% $states.input.xs %}",
        ItemSelector={"x": "{% $states.context.Map.Item.Value * 2 %}"},
        MaxConcurrency=3,
    )
    response = tried(state, input={"xs": [1, 2]}, mock=mocked([5, 6]), inspectionLevel="DEBUG")
    assert response["output"] == [5, 6]
    assert response["inspectionData"] == {
        "input": {"xs": [1, 2]},
        "afterItemSelector": [{"x": 2}, {"x": 4}],
        "maxConcurrency": 3,
    }


LISTED = {**a_map(), "QueryLanguage": "JSONPath"}


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, {}),
        ({"ItemsPath": "$"}, {"afterItemsPath": [{"itemId": 1}, {"itemId": 2}]}),
        ({"MaxConcurrency": 0}, {"maxConcurrency": 0}),
        ({"MaxConcurrencyPath": "$[0].itemId"}, {"maxConcurrency": 1}),
    ],
)
def test_a_jsonpath_map_shows_only_the_fields_it_has(
    fields: Mapping[str, Any], shown: Mapping[str, Any]
) -> None:
    """A published response of AWS is the first (AWS News Blog, 2025-11-19, "Accelerate workflow
    development with enhanced local testing in AWS Step Functions").
    """
    items, result = [{"itemId": 1}, {"itemId": 2}], [{"itemId": 1, "status": "processed"}, 2]
    request: dict[str, Any] = {"mock": mocked(result), "inspectionLevel": "DEBUG"}
    response = tried({**LISTED, **fields}, input=items, **request)
    assert response["inspectionData"] == {
        "input": items,
        "afterInputPath": items,
        "afterResultSelector": result,
        "afterResultPath": result,
        **shown,
    }


def test_the_input_is_shown_as_written() -> None:
    """AWS's model: "The raw state input"."""
    text = '{ "a": [1,  2.50], "b": "\\u00e9" }'
    state = {"Type": "Pass", "End": True}
    request = {"definition": json.dumps(state), "input": text, "inspectionLevel": "DEBUG"}
    response = run(trial.test_state(SERVICE, request, bytes(16)), World().perform)
    assert response["inspectionData"]["input"] == text


@pytest.mark.parametrize(("failed", "status"), [(1, "SUCCEEDED"), (2, "FAILED")])
def test_a_map_fails_when_more_items_failed_than_it_tolerates(failed: int, status: str) -> None:
    state = a_map(Items="{% $states.input %}", ToleratedFailurePercentage=50)
    response = tried(
        state,
        input=[1, 2, 3],
        mock=mocked([1, 1, 1]),
        stateConfiguration={"mapIterationFailureCount": failed},
    )
    assert response["status"] == status


def test_items_that_a_reader_would_read_are_those_that_the_caller_names() -> None:
    state = a_map(
        ItemReader={
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON"},
            "Arguments": {"Bucket": "b", "Key": "k"},
        },
    )
    request: dict[str, Any] = {
        "mock": mocked([1]),
        "stateConfiguration": {"mapItemReaderData": "[1]", "mapIterationFailureCount": 2},
    }
    assert refusal(state, **request)[1].startswith("Map iteration failure count must be less")


def test_a_map_shows_its_batches_and_lines_of_a_reader_are_its_items() -> None:
    state = a_map(
        ItemReader={
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSONL"},
            "Arguments": {"Bucket": "b", "Key": "k"},
        },
        ItemBatcher={"MaxItemsPerBatch": 2, "BatchInput": {"all": "{% 1 + 1 %}"}},
    )
    response = tried(
        state,
        mock=mocked([1, 1]),
        inspectionLevel="DEBUG",
        stateConfiguration={"mapItemReaderData": '{"n": 1}\n{"n": 2}\n{"n": 3}\n'},
    )
    assert response["inspectionData"]["afterItemBatcher"] == [
        {"BatchInput": {"all": 2}, "Items": [{"n": 1}, {"n": 2}]},
        {"BatchInput": {"all": 2}, "Items": [{"n": 3}]},
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n3\n5,6\n", [{"a": "1", "b": "2"}, {"a": "3", "b": ""}]),
        ("a,a\n1,2\n", "CSV headers cannot contain duplicates."),
    ],
)
def test_rows_of_a_reader_are_its_items(text: str, expected: Any) -> None:
    state = a_map(
        ItemReader={
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "MaxItems": 2},
            "Arguments": {"Bucket": "b", "Key": "k"},
        },
        ItemSelector="{% $states.context.Map.Item.Value %}",
    )
    response = tried(
        state,
        mock=mocked([1, 1]),
        inspectionLevel="DEBUG",
        stateConfiguration={"mapItemReaderData": text},
    )
    shown = response["inspectionData"].get("afterItemSelector", response.get("cause"))
    assert shown == expected


def reading(bucket: Bucket) -> Callable[[RunTask], TaskResult]:
    return lambda task: item_reader.read(task, bucket)


READER_CONFIGS: list[dict[str, Any]] = [
    {},
    {"InputType": "JSON", "ItemsPointer": "/a"},
    {"InputType": "JSON", "ItemsPointer": "/a/b"},
    {"InputType": "JSONL"},
    {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
    {"InputType": "JSON", "MaxItems": "{% $states.input.most %}"},
]
FILES = (
    "[1, 2]",
    '{"a": [1, 2]}',
    '{"a": {"b": [3]}}',
    '{"a": 5}',
    '"text"',
    "no json",
    '{"x": 1}\n{"x": 2}\n',
    "h\n1\n2\n",
    "null",
    "[]",
)


@pytest.mark.parametrize("config", READER_CONFIGS)
@pytest.mark.parametrize("most", [1, 1.5, -1])
def test_mocked_data_is_read_as_an_execution_reads_the_file(
    config: dict[str, Any], most: float
) -> None:
    where = {"Bucket": "{% $states.input.bucket %}", "Key": "it"}
    reader = {"Resource": "arn:aws:states:::s3:getObject", "ReaderConfig": config}
    state = a_map(
        ItemReader={**reader, "Arguments": where},
        ItemSelector="{% $states.context.Map.Item %}",
    )
    definition = {"StartAt": "M", "States": {"M": state}}
    opening = re.compile(r"An error occurred while executing the state 'M' \(.*?\)\. ")
    for text in FILES:
        bucket = Bucket(it=text.encode())
        office = Office(reading(bucket))
        for data in ({"bucket": "b", "most": most}, {"most": most}):
            execution = office.start(office.create(definition), data)
            office.wait(100)
            [run] = office.call("ListMapRuns", executionArn=execution)["mapRuns"] or [None]
            rows = run and office.call("ListExecutions", mapRunArn=run["mapRunArn"])["executions"]
            inputs = [office.describe(row["executionArn"])["input"] for row in rows or ()]
            found = office.describe(execution)
            shown = tried(
                definition,
                stateName="M",
                input=data,
                mock=mocked([]),
                inspectionLevel="DEBUG",
                stateConfiguration={"mapItemReaderData": text},
            )
            cause = opening.sub("", found.get("cause", ""))
            assert (shown.get("error"), shown.get("cause", "")) == (found.get("error"), cause)
            selected = shown["inspectionData"].get("afterItemSelector", [])
            assert selected == sorted(map(json.loads, inputs), key=lambda one: one["Index"])


def test_more_failed_iterations_than_iterations_are_refused() -> None:
    code, message = refusal(
        a_map(Items=[1]),
        mock=mocked([1]),
        stateConfiguration={"mapIterationFailureCount": 2},
    )
    assert code == "ValidationException"
    assert message.startswith("Map iteration failure count must be less than or equal")


def test_items_that_are_no_array_are_named_by_their_path() -> None:
    state = {**a_map(ItemsPath="$.xs"), "QueryLanguage": "JSONPath"}
    response = tried(state, input={"xs": {}, "y": 1} | {"xs": "no"}, mock=mocked([]))
    assert response["error"] == "States.Runtime"
    assert response["cause"] == 'Reference path "$.xs" must point to array.'


BOUNDS = ("MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage")
BATCHES = ("MaxItemsPerBatch", "MaxInputBytesPerBatch")


@pytest.mark.parametrize("field", [*BOUNDS, *BATCHES])
@pytest.mark.parametrize("language", ["JSONata", "JSONPath"])
def test_a_bound_of_a_map_is_refused_as_in_an_execution(field: str, language: str) -> None:
    given: dict[str, Any] = {field: "{% $states.input.v %}"}
    items: dict[str, Any] = {"Items": "{% [1, 2] %}"}
    if language == "JSONPath":
        given, items = {f"{field}Path": "$.v"}, {"ItemsPath": "$.list"}
    if field in BATCHES:
        given = {"ItemBatcher": given}
    state = {**a_map(**items, **given), "QueryLanguage": language}
    definition = {"StartAt": "M", "States": {"M": state}}
    office = Office()
    machine = office.create(definition)
    opening = re.compile(r"An error occurred while executing the state 'M' \(.*?\)\. ")
    for value in (0, 1, -1, 1.5, 150, "5", "x", None, True, [1], {"a": 1}):
        data = {"v": value, "list": [1, 2]}
        execution = office.start(machine, data)
        office.wait(100)
        found = office.describe(execution)
        expected = [found.get("error"), opening.sub("", found.get("cause", ""))]
        shown = tried(definition, stateName="M", input=data, mock=mocked([1, 2]))
        assert [shown.get("error"), shown.get("cause", "")] == expected, value


def test_a_parallel_mock_has_a_result_for_each_branch() -> None:
    branch = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    state = {"Type": "Parallel", "Branches": [branch], "End": True}
    assert tried(state, mock=mocked([1]))["output"] == [1]
    assert refusal(state, mock=mocked({}))[1] == "Mocked result must be an array."
    assert refusal(state, mock=mocked([1, 2]))[1].startswith("Mocked result must contain the same")


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "request_", "code", "message"),
    [
        (
            a_task(),
            {},
            "ValidationException",
            "RoleArn must be specified when testing a Task state",
        ),
        (
            {"Type": "Pass", "End": True},
            {"mock": {"result": "1"}},
            "ValidationException",
            "State type 'Pass' is not supported when a mock is specified",
        ),
        (
            a_task(),
            {"mock": {"result": "{}", "errorOutput": {"error": "E"}}},
            "ValidationException",
            "A test mock should have only one of the following fields: [result, errorOutput].",
        ),
        (
            a_map(),
            {"stateConfiguration": {"mapIterationFailureCount": 0}},
            "ValidationException",
            "TestState does not support MapIterationFailureCount when a mock is not specified.",
        ),
        (
            a_task(),
            {"mock": {"result": "{}"}, "context": {"Map": {}}},
            "ValidationException",
            (
                "Invalid Context object provided: 'Map' field is not supported when mocking a "
                "Context object"
            ),
        ),
        (
            a_task(),
            {"mock": {"result": "{}"}, "context": {"Pokedex": {}}},
            "ValidationException",
            "Invalid Context object provided: Field 'Pokedex' is not allowed",
        ),
    ],
)
def test_a_request_that_does_not_go_with_the_state_is_refused(
    state: dict[str, Any], request_: dict[str, Any], code: str, message: str
) -> None:
    assert refusal(state, **request_) == (code, message)


def test_a_task_that_waits_for_an_answer_needs_a_mock() -> None:
    state = a_task(Resource="arn:aws:states:::sqs:sendMessage.waitForTaskToken", Arguments=COMPUTED)
    assert refusal(state, roleArn=ROLE)[0] == "InvalidDefinition"


def test_a_name_that_the_definition_does_not_have_is_refused() -> None:
    machine = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    assert refusal(machine, stateName="B") == (
        "ValidationException",
        "State not found in definition",
    )


def test_an_invalid_state_is_named_as_aws_names_one_that_stands_alone() -> None:
    code, message = refusal({"Type": "Parallel", "Branches": [], "End": True})
    assert code == "InvalidDefinition"
    assert "/States/StateName/Branches" in message


# -- the context object ----------------------------------------------------------------------------


def test_a_state_alone_sees_the_context_of_an_execution_that_never_was() -> None:
    state = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% $states.context %}"}
    context = tried({**state, "End": True}, input={"a": 1}, roleArn=ROLE)["output"]
    assert context["Execution"]["Input"] == {"a": 1}
    assert context["Execution"]["RoleArn"] == ROLE
    assert ":express:" in context["Execution"]["Id"]
    assert context["State"] == {
        "Name": "StateName",
        "EnteredTime": "2026-09-21T14:13:20.000Z",
    }


@pytest.mark.parametrize(
    "given",
    [{}, {"StateMachine": {"Id": "x"}}, {"Execution": {"Id": "x"}}, {"State": {"Name": "x"}}],
)
def test_a_given_context_is_all_that_the_state_sees(given: Any) -> None:
    state = a_task(Output="{% $states.context %}")
    assert tried(state, mock=mocked({}), context=given)["output"] == given


def test_a_task_that_waits_for_its_token_has_one() -> None:
    resource = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
    state = {
        "Type": "Task",
        "Resource": resource,
        "Parameters": {"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"},
        "End": True,
    }
    response = tried(state, mock=mocked({"any": "thing"}), inspectionLevel="DEBUG")
    assert response["output"] == {"any": "thing"}
    assert response["inspectionData"]["afterParameters"]["MessageBody"]


# -- any request -----------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS | st.sampled_from(["$", "$.a", "$$.x", "{% $states.input %}", "{% $x %}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
FIELDS = [
    *("InputPath", "Parameters", "ResultSelector", "ResultPath", "OutputPath", "ItemsPath"),
    *("Arguments", "Output", "Assign", "Items", "Seconds", "Error", "Cause", "Retry", "Catch"),
    *("Choices", "Branches", "QueryLanguage"),
]
STATES = st.builds(
    lambda kind, fields: {"Type": kind, "Resource": INVOKE, "End": True, **fields},
    st.sampled_from(["Pass", "Task", "Map", "Parallel", "Wait", "Choice", "Fail", "Succeed"]),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3),
)


@pytest.fixture(scope="module")
def _parsed_once() -> None:
    """The parser of JSONata raises the recursion limit; hypothesis wants none that changes."""
    compile_expression("1")


@pytest.mark.usefixtures("_parsed_once")
@settings(max_examples=examples(150), deadline=None, database=None, derandomize=True)
@given(state=STATES, data=VALUES, result=VALUES, is_mocked=st.booleans())
def test_any_request_is_answered_or_refused(
    state: dict[str, Any], data: Any, result: Any, is_mocked: bool
) -> None:
    request = {"mock": mocked(result)} if is_mocked else {"roleArn": ROLE}
    try:
        response = tried(
            state, World(TaskSucceeded(result)), input=data, inspectionLevel="TRACE", **request
        )
    except StatesFault as fault:
        assert fault.code in {"ValidationException", "InvalidDefinition"}
    else:
        assert response["status"] in {"SUCCEEDED", "FAILED", "RETRIABLE", "CAUGHT_ERROR"}
