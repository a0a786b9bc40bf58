"""The arguments of service calls, as CreateStateMachine, UpdateStateMachine, TestState and
ValidateStateMachineDefinition check them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.states_kit import ROLE, Desk


def task(action: str, arguments: Any = None, *, language: str = "JSONPath") -> dict[str, Any]:
    state = {"Type": "Task", "Resource": f"arn:aws:states:::{action}", "End": True}
    state["QueryLanguage"] = language
    if arguments is not None:
        state["Arguments" if language == "JSONata" else "Parameters"] = arguments
    return state


def found_in(state: dict[str, Any]) -> list[tuple[str, str]]:
    text = json.dumps({"StartAt": "A", "States": {"A": state}})
    found = Desk().call("ValidateStateMachineDefinition", definition=text)["diagnostics"]
    assert {one["code"] for one in found} <= {"SCHEMA_VALIDATION_FAILED"}
    return [(one["message"], one["location"]) for one in found]


def unknown(name: str) -> str:
    return f'The field "{name}" is not supported by Step Functions'


def missing(name: str) -> str:
    return f"The field '{name}' is required but was missing"


TRAINING = {"TrainingJobName": "n", "RoleArn": "r", "OutputDataConfig": {"S3OutputPath": "s"}}
POLICY = {"PolicyStoreId": "p"}


@pytest.mark.parametrize(
    ("action", "arguments", "name"),
    [
        # amazon-sagemaker-examples#4492, aws-cdk#10014, aws-cdk#29968, localstack#9853
        ("sagemaker:createTrainingJob", {**TRAINING, "Tags": [{"key": "a"}]}, "key"),
        (
            "sagemaker:createTrainingJob.sync",
            {**TRAINING, "InputDataConfig": [{"DataSource": {"S3DataSource": {"Atttribute": 1}}}]},
            "Atttribute",
        ),
        (
            "aws-sdk:verifiedpermissions:createPolicy",
            {**POLICY, "Definition": {"static": {"Statement": "s"}}},
            "static",
        ),
        ("aws-sdk:sfn:startExecution", {"StateMachineArn": "a", "input": "{}"}, "input"),
        ("aws-sdk:ec2:describeSnapshots", {"Filter": []}, "Filter"),  # AWS docs
        ("ecs:runTask.sync", {"TaskDefinition": "t", "awsVpc": {}}, "awsVpc"),
        ("lambda:invoke.waitForTaskToken", {"FunctionName": "f", "TaskToken": "t"}, "TaskToken"),
        ("dynamodb:getItem", {"TableName": "t", "Key": {"id": {"Text": "x"}}}, "Text"),
        ("elasticmapreduce:addStep", {"ClusterId": "c", "Step": {"Nom": "s"}}, "Nom"),
    ],
)  # fmt: skip
def test_a_field_that_the_action_does_not_have_is_refused_at_the_place_of_the_arguments(
    action: str, arguments: dict[str, Any], name: str
) -> None:
    assert found_in(task(action, arguments)) == [(unknown(name), "/States/A/Parameters")]
    state = task(action, arguments, language="JSONata")
    assert found_in(state) == [(unknown(name), "/States/A/Arguments")]


@pytest.mark.parametrize(
    ("action", "arguments", "names"),
    [
        ("lambda:invoke", {}, ["FunctionName"]),
        ("sqs:sendMessage", {}, ["QueueUrl", "MessageBody"]),
        ("sns:publish", {"TopicArn": "t"}, ["Message"]),
        ("dynamodb:putItem", {"TableName.$": "$.t"}, ["Item"]),
        ("states:startExecution.sync:2", {"Input": {}}, ["StateMachineArn"]),
        ("events:putEvents", {}, ["Entries"]),
        ("ecs:runTask", {}, ["TaskDefinition"]),
        ("glue:startJobRun", {}, ["JobName"]),
        ("elasticmapreduce:addStep", {}, ["ClusterId", "Step"]),
        ("emr-serverless:startJobRun", {"ApplicationId": "a"}, ["ExecutionRoleArn"]),
        (
            "aws-sdk:emrserverless:startJobRun",
            {"ApplicationId": "a", "ExecutionRoleArn": "r"},
            ["ClientToken"],
        ),
    ],
)
def test_a_field_that_the_action_requires_is_missed(
    action: str, arguments: dict[str, Any], names: list[str]
) -> None:
    expected = [(missing(name), "/States/A/Parameters") for name in names]
    assert found_in(task(action, arguments)) == expected


@pytest.mark.parametrize("action", ["lambda:invoke", "aws-sdk:neptune:describeDBClusters"])
def test_a_call_without_arguments_is_refused(action: str) -> None:
    for language, field in (("JSONPath", "Parameters"), ("JSONata", "Arguments")):
        message = f"{field} field is required for resource ARN: arn:aws:states:::{action}"
        assert found_in(task(action, language=language)) == [(message, "/States/A")]


@pytest.mark.parametrize(
    "state",
    [
        task("lambda:invoke", {"FunctionName.$": "$.f", "TaskToken.$": "$$.Task.Token"}),
        task("sagemaker:createTrainingJob", {**TRAINING, "Tags": [{"key.$": "$.k"}]}),
        task("sqs:sendMessage", "{% $states.input %}", language="JSONata"),
        task("lambda:invoke", {"FunctionName": "f", "No": "{% 1 %}"}, language="JSONata"),
        task("lambda:invoke", {"FunctionName": "f", "Payload": {"any": {"thing": 1}}}),
        task("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": {"any": 1}}),
        task("aws-sdk:secretsmanager:listSecrets", {}),
        task("aws-sdk:rds:describeDBInstances", {"DbInstanceIdentifier": "d"}),
        task("aws-sdk:scheduler:getSchedule", {"Name": 5}),  # types are found when it runs
        task("batch:submitJob", {"JobName": "j", "JobQueue": "q", "JobDefinition": "d",
                                 "RetryStrategy": {"attempts": 5}}),  # AWS docs
        task("bedrock:invokeModel", {"ModelId": "m", "Input": {"S3Uri": "s"}, "Output": {}}),
        task("elasticmapreduce:setClusterTerminationProtection",
             {"ClusterId.$": "$.c", "TerminationProtected": True}),
        task("elasticmapreduce:modifyInstanceGroupByName",
             {"ClusterId": "c", "InstanceGroupName": "g", "InstanceGroup": {"InstanceCount": 8}}),
        task("emr-containers:startJobRun", {"VirtualClusterId": "v"}),
        task("http:invoke", {"ApiEndpoint": "https://a.b"}),
        task("aws-sdk:nothing:atAll", {"Any": 1}),
    ],
)  # fmt: skip
def test_what_an_action_may_take_or_an_execution_computes_is_accepted(
    state: dict[str, Any],
) -> None:
    assert found_in(state) == []


def test_every_operation_that_takes_a_definition_checks_arguments() -> None:
    state = task("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": "b", "Delay": 1})
    text = json.dumps({"StartAt": "A", "States": {"A": state}})
    sentence = (
        'Invalid State Machine Definition: \'SCHEMA_VALIDATION_FAILED: The field "Delay" is not '
        "supported by Step Functions at /States/A/Parameters'"
    )
    refused = ("InvalidDefinition", sentence)
    desk = Desk()
    arn = desk.create("other")
    mock = {"result": "{}", "fieldValidationMode": "NONE"}
    assert desk.refusal("CreateStateMachine", name="m", definition=text, roleArn=ROLE) == refused
    assert desk.refusal("UpdateStateMachine", stateMachineArn=arn, definition=text) == refused
    assert desk.refusal("TestState", definition=text, stateName="A", mock=mock) == refused
    alone = desk.refusal("TestState", definition=json.dumps(state), mock=mock)
    assert alone == (refused[0], sentence.replace("/A/", "/StateName/"))


def test_the_language_is_that_of_the_state_within_that_of_the_machine() -> None:
    sending: dict[str, Any] = {**task("sqs:sendMessage"), "Arguments": {}}
    del sending["QueryLanguage"]
    inner = {"StartAt": "In", "States": {"In": sending}}
    both = {"Type": "Parallel", "Branches": [inner], "End": True}
    machine = {"StartAt": "A", "QueryLanguage": "JSONata", "States": {"A": both}}
    asked = {"definition": json.dumps(machine)}
    found = Desk().call("ValidateStateMachineDefinition", **asked)["diagnostics"]
    place = "/States/A/Branches[0]/States/In/Arguments"
    assert [(one["message"], one["location"]) for one in found] == [
        (missing("QueueUrl"), place),
        (missing("MessageBody"), place),
    ]
