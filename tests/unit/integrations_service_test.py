"""Requests and results of services, after botocore's models."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.integrations import Integrations
from holdfast.integrations.jobs import poll
from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from tests.unit.integrations_kit import Clients, effect, perform

MOMENT = datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def test_pascal_case_becomes_the_services_own_spelling_at_any_depth() -> None:
    arguments = {
        "Cluster": "c",
        "TaskDefinition": "t:1",
        "NetworkConfiguration": {"AwsvpcConfiguration": {"Subnets": ["s"]}},
        "Overrides": {"ContainerOverrides": [{"Name": "n", "Environment": [{"Name": "A"}]}]},
    }
    result, clients = perform(effect("ecs:runTask", arguments, "sync"), {"run_task": {"tasks": []}})
    assert result.output["Tasks"] == []
    assert clients.calls == [
        (
            "run_task",
            {
                "cluster": "c",
                "taskDefinition": "t:1",
                "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["s"]}},
                "overrides": {
                    "containerOverrides": [{"name": "n", "environment": [{"name": "A"}]}]
                },
            },
        )
    ]


def test_the_sdk_writes_moments_as_text_and_optimised_integrations_as_milliseconds() -> None:
    table = {"Table": {"TableName": "t", "CreationDateTime": MOMENT}}
    describe = effect("aws-sdk:dynamodb:describeTable", {"TableName": "t"})
    result, _ = perform(describe, {"describe_table": table})
    assert result.output["Table"]["CreationDateTime"] == "2024-05-01T12:00:00.250Z"
    task = {"tasks": [{"taskArn": "a", "createdAt": MOMENT}]}
    arguments = {"TaskDefinition": "t"}
    result, _ = perform(effect("ecs:runTask", arguments), {"run_task": task})
    assert result.output["Tasks"] == [{"CreatedAt": 1_714_564_800_250, "TaskArn": "a"}]


@pytest.mark.parametrize(
    ("data", "text"), [(b"caf\xc3\xa9", "café"), (b"\xff\x00", "/wA=")], ids=["text", "bytes"]
)
def test_a_stream_comes_as_text_or_in_base_64(data: bytes, text: str) -> None:
    arguments = {"Bucket": "b", "Key": "k"}
    answer = {"Body": io.BytesIO(data), "Metadata": {}}
    result, _ = perform(effect("aws-sdk:s3:getObject", arguments), {"get_object": answer})
    assert result == TaskSucceeded({"Body": text, "Metadata": {}})


def test_an_optimised_integration_insists_on_text_where_the_sdk_writes_json() -> None:
    arguments = {"TableName": "t", "Item": {"n": {"N": 5}}}
    result, _ = perform(effect("dynamodb:putItem", arguments), {"put_item": {}})
    assert result.error == "States.Runtime"
    assert result.cause.endswith("[The value for the field 'N' must be a STRING]")
    _, clients = perform(effect("aws-sdk:dynamodb:putItem", arguments), {"put_item": {}})
    assert clients.calls[0][1]["Item"] == {"n": {"N": "5"}}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"TableName": "t", "Item": []}, "The value for the field 'Item' must be an OBJECT"),
        ({"TableName": "t", "Itme": {}}, 'The field "Itme" is not supported by Step Functions'),
        ([], "The value for the field 'Parameters' must be an OBJECT"),
    ],
)
def test_arguments_that_are_no_request(arguments: Any, problem: str) -> None:
    result, _ = perform(effect("dynamodb:putItem", arguments), {"put_item": {}})
    assert result.error == "States.Runtime"
    assert result.cause.endswith(f"[{problem}]")


CLUSTER = {"ClusterId": "j-1"}
NEW_CLUSTER = {"Name": "n", "Instances": {"KeepJobFlowAliveWhenNoSteps": True}}


@pytest.mark.parametrize(
    ("action", "arguments", "method", "request_", "answer", "result"),
    [
        (
            "createCluster",
            NEW_CLUSTER,
            "run_job_flow",
            NEW_CLUSTER,
            {"JobFlowId": "j-1"},
            CLUSTER,
        ),
        (
            "addStep",
            {**CLUSTER, "Step": {"Name": "one"}},
            "add_job_flow_steps",
            {"JobFlowId": "j-1", "Steps": [{"Name": "one"}]},
            {"StepIds": ["s-1"]},
            {"StepId": "s-1"},
        ),
        (
            "cancelStep",
            {**CLUSTER, "StepId": "s-1"},
            "cancel_steps",
            {"ClusterId": "j-1", "StepIds": ["s-1"]},
            {"CancelStepsInfoList": [{"StepId": "s-1", "Status": "SUBMITTED"}]},
            {"CancelStepsInfo": {"StepId": "s-1", "Status": "SUBMITTED"}},
        ),
        (
            "setClusterTerminationProtection",
            {**CLUSTER, "TerminationProtected": True},
            "set_termination_protection",
            {"JobFlowIds": ["j-1"], "TerminationProtected": True},
            {},
            {},
        ),
        ("terminateCluster", CLUSTER, "terminate_job_flows", {"JobFlowIds": ["j-1"]}, {}, {}),
    ],
)
def test_emr_has_the_fields_of_step_functions(
    action: str, arguments: Any, method: str, request_: Any, answer: Any, result: Any
) -> None:
    found, clients = perform(effect(f"elasticmapreduce:{action}", arguments), {method: answer})
    assert clients.calls == [(method, request_)]
    assert {name: found.output[name] for name in found.output if "Sdk" not in name} == result


@pytest.mark.parametrize(
    ("body", "shown"), [(b'{"results":[1]}', {"results": [1]}), (b"plain", "plain")]
)
def test_the_answer_of_a_bedrock_model_is_json(body: bytes, shown: Any) -> None:
    arguments = {"ModelId": "m", "Body": {"inputText": "hello"}}
    answer = {"body": io.BytesIO(body), "contentType": "application/json"}
    result, clients = perform(effect("bedrock:invokeModel", arguments), {"invoke_model": answer})
    assert clients.calls == [("invoke_model", {"modelId": "m", "body": b'{"inputText":"hello"}'})]
    assert (result.output["Body"], result.output["ContentType"]) == (shown, "application/json")


def test_a_customisation_of_a_bedrock_model_is_begun() -> None:
    task = effect("bedrock:createModelCustomizationJob", {"JobName": "n"})
    result, _ = perform(task, {"create_model_customization_job": {"jobArn": "a"}})
    assert result.output["JobArn"] == "a"


# -- jobs ------------------------------------------------------------------------------------------

BATCH = effect("batch:submitJob", {"JobName": "n"}, "sync")


def _poll(task: Any, started: Any, answers: Any) -> Any:
    return poll(task, started, Clients(answers))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("RUNNING", None),
        ("SUCCEEDED", TaskSucceeded({"JobId": "j", "Status": "SUCCEEDED"})),
        ("FAILED", TaskFailed("States.TaskFailed", '{"JobId":"j","Status":"FAILED"}')),
    ],
)
def test_a_job_is_over_when_its_service_says_so(status: str, expected: Any) -> None:
    answer = {"describe_jobs": {"jobs": [{"jobId": "j", "status": status}]}}
    assert _poll(BATCH, {"JobId": "j"}, answer) == expected


def test_fields_that_the_start_did_not_answer_come_from_the_arguments() -> None:
    task = effect("glue:startJobRun", {"JobName": "etl"}, "sync")
    clients = Clients({"get_job_run": {"JobRun": {"Id": "jr", "JobRunState": "SUCCEEDED"}}})
    result = poll(task, {"JobRunId": "jr"}, clients)  # type: ignore[arg-type]
    assert result == TaskSucceeded({"Id": "jr", "JobRunState": "SUCCEEDED"})
    assert clients.calls == [("get_job_run", {"JobName": "etl", "RunId": "jr"})]


@pytest.mark.parametrize(("code", "kind"), [(0, TaskSucceeded), (1, TaskFailed)])
def test_a_container_task_ends_well_when_its_containers_did(code: int, kind: type) -> None:
    task = effect("ecs:runTask", {}, "sync")
    started = {"Tasks": [{"TaskArn": "a", "ClusterArn": "c"}]}
    stopped = {"lastStatus": "STOPPED", "containers": [{"exitCode": code}]}
    assert isinstance(_poll(task, started, {"describe_tasks": {"tasks": [stopped]}}), kind)


def test_a_question_that_fails_is_no_answer() -> None:
    from botocore.exceptions import ClientError

    said = {"Error": {"Code": "Throttling"}}
    assert _poll(BATCH, {"JobId": "j"}, {"describe_jobs": ClientError(said, "x")}) is None


@pytest.mark.parametrize(
    ("target", "arguments", "problem"),
    [
        ("sqs:sendMessage", [1], "The value for the field 'Parameters' must be an OBJECT"),
        ("sqs:sendMessage", {"QueueUrl": 1}, "The value for the field 'QueueUrl' must be a STRING"),
        ("lambda:invoke", {}, "The field 'FunctionName' is required but was missing"),
        ("http:invoke", {}, "The field 'ApiEndpoint' is required but was missing"),
        (
            "apigateway:invoke",
            {"ApiEndpoint": "a", "Method": "GET", "QueryParameters": "?a=1"},
            "The value of the field 'QueryParameters' has an invalid format",
        ),
        ("states:startExecution", {"Foo": 1}, 'The field "Foo" is not supported by Step Functions'),
    ],
)
def test_a_misuse_is_found_without_a_call(target: str, arguments: Any, problem: str) -> None:
    services = Integrations(Clients({}), lambda *_: {})  # type: ignore[arg-type]
    found = services.find_misuse(target, arguments)
    assert found is not None
    assert found.endswith(f"could not be used to start the Task: [{problem}]")


@pytest.mark.parametrize(
    ("target", "arguments"),
    [("sqs:sendMessage", {"MessageBody": {"a": 1}}), ("no:such", {}), ("eks:runJob", {})],
)
def test_what_only_a_call_can_tell_is_no_misuse(target: str, arguments: Any) -> None:
    services = Integrations(Clients({}), lambda *_: {})  # type: ignore[arg-type]
    assert services.find_misuse(target, arguments) is None
