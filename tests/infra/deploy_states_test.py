"""State machines on the deployed stack: Step Functions' own client against the API, under IAM.

A task's rights come from a managed policy of the deployment, and from nothing else.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.infra.deployed import PARCELS, Deployment
from tests.infra.ministack import ACCOUNT, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy")]

ROLE = f"arn:aws:iam::{ACCOUNT}:role/recorded-only"
PASS = {"Type": "Pass", "End": True}
TERMINAL = {"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"}


def parcel_machine(url: str) -> dict[str, Any]:
    """Return a machine in JSONPath: heavy parcels wait for an approval; light ones pass."""
    send = {"QueueUrl": url, "MessageBody.$": "$.parcel"}
    ask = {"QueueUrl": url, "MessageBody": {"token.$": "$$.Task.Token"}}
    return {
        "StartAt": "Weigh",
        "States": {
            "Weigh": {
                "Type": "Pass",
                "Parameters": {"parcel.$": "$.id", "grams.$": "$.grams"},
                "Next": "Heavy",
            },
            "Heavy": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.grams", "NumericGreaterThan": 999, "Next": "Announce"}],
                "Default": "Light",
            },
            "Announce": {
                "Type": "Task",
                "Resource": "arn:aws:states:::sqs:sendMessage",
                "Parameters": send,
                "ResultPath": "$.sent",
                "Next": "Ask",
            },
            "Ask": {
                "Type": "Task",
                "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
                "Parameters": ask,
                "ResultPath": "$.answer",
                "OutputPath": "$['parcel', 'answer']",
                "End": True,
            },
            "Light": {"Type": "Pass", "End": True},
        },
    }  # fmt: skip


def parcels_url(deployment: Deployment) -> str:
    return str(deployment.cloud.client("sqs").get_queue_url(QueueName=PARCELS)["QueueUrl"])


def created(states: Any, name: str, definition: dict[str, Any], **settings: Any) -> str:
    text = json.dumps(definition)
    made = states.create_state_machine(name=name, definition=text, roleArn=ROLE, **settings)
    return str(made["stateMachineArn"])


def task(resource: str, **arguments: Any) -> dict[str, Any]:
    return {"Type": "Task", "Resource": resource, "Parameters": arguments}


def received(deployment: Deployment) -> str:
    """The text of the next message among the parcels; it is taken out."""
    queues, url = deployment.cloud.client("sqs"), parcels_url(deployment)
    message = wait_for(lambda: queues.receive_message(QueueUrl=url).get("Messages"))[0]
    queues.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return str(message["Body"])


def described(states: Any, execution_arn: str) -> dict[str, Any]:
    """Once it has ended."""

    def once_ended() -> dict[str, Any] | None:
        found = states.describe_execution(executionArn=execution_arn)
        return found if found["status"] in TERMINAL else None

    return dict(wait_for(once_ended))


def test_a_state_machine_calls_a_service_waits_for_its_token_and_ends(
    deployment: Deployment,
) -> None:
    states = deployment.call.states()
    machine = created(states, "parcels", parcel_machine(parcels_url(deployment)))
    execution = states.start_execution(
        stateMachineArn=machine, name="p-1", input=json.dumps({"id": "p-1", "grams": 2_500})
    )["executionArn"]

    assert received(deployment) == "p-1"
    token = json.loads(received(deployment))["token"]
    assert states.describe_execution(executionArn=execution)["status"] == "RUNNING"
    states.send_task_success(taskToken=token, output='{"carried_by": "two"}')

    found = described(states, execution)
    assert found["status"] == "SUCCEEDED", found
    assert json.loads(found["output"]) == {"parcel": "p-1", "answer": {"carried_by": "two"}}
    history = states.get_execution_history(executionArn=execution)["events"]
    assert [event["type"] for event in history] == [
        *("ExecutionStarted", "PassStateEntered", "PassStateExited"),
        *("ChoiceStateEntered", "ChoiceStateExited"),
        *("TaskStateEntered", "TaskScheduled", "TaskStarted", "TaskSucceeded", "TaskStateExited"),
        *("TaskStateEntered", "TaskScheduled", "TaskStarted", "TaskSubmitted"),
        *("TaskSucceeded", "TaskStateExited", "ExecutionSucceeded"),
    ]

    def listed() -> list[str]:
        answer = states.list_executions(stateMachineArn=machine, statusFilter="SUCCEEDED")
        return [row["name"] for row in answer["executions"]]

    wait_for(lambda: listed() == ["p-1"])


def test_a_task_needs_a_policy_for_each_action(deployment: Deployment) -> None:
    states = deployment.call.states()
    look = task("arn:aws:states:::aws-sdk:sqs:listQueues")
    machine = created(
        states, "curious", {"StartAt": "Look", "States": {"Look": {**look, "End": True}}}
    )
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]

    found = described(states, execution)

    assert (found["status"], found["error"]) == ("FAILED", "Sqs.SqsException")


def test_a_task_may_not_read_the_stacks_tables_though_its_policy_allows_all_tables(
    deployment: Deployment,
) -> None:
    states = deployment.call.states()
    tables = deployment.cloud.client("dynamodb")
    tables.create_table(
        TableName="users-own",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )

    def looked(table: str) -> dict[str, Any]:
        look = task(
            "arn:aws:states:::aws-sdk:dynamodb:query",
            TableName=table,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": "default#x"}},
        )
        peek = {"StartAt": "Look", "States": {"Look": {**look, "End": True}}}
        machine = created(states, f"peek-{table}", peek)
        return described(states, states.start_execution(stateMachineArn=machine)["executionArn"])

    assert looked("users-own")["status"] == "SUCCEEDED"
    for table in (deployment.outputs["ExecutionsTable"], deployment.outputs["MailTable"]):
        found = looked(table)
        assert (found["status"], found["error"]) == ("FAILED", "DynamoDb.DynamoDbException")
        assert "TasksRole" in found["cause"]
        assert "explicit deny" in found["cause"]


def test_a_state_machine_starts_another_and_waits_for_its_end(deployment: Deployment) -> None:
    states = deployment.call.states()
    light = created(states, "light", {"StartAt": "P", "States": {"P": PASS}})
    start = task(
        "arn:aws:states:::states:startExecution.sync:2", StateMachineArn=light, Input={"n": 1}
    )
    machine = created(
        states, "outer", {"StartAt": "Start", "States": {"Start": {**start, "End": True}}}
    )
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]

    found = described(states, execution)

    assert found["status"] == "SUCCEEDED", found
    assert json.loads(found["output"])["Output"] == {"n": 1}


def test_a_task_lists_and_deletes_by_step_functions_own_actions(deployment: Deployment) -> None:
    states = deployment.call.states()
    doomed = created(states, "doomed", {"StartAt": "P", "States": {"P": PASS}})
    described(states, states.start_execution(stateMachineArn=doomed, name="last")["executionArn"])
    machine = {"StateMachineArn": doomed}
    look = task("arn:aws:states:::aws-sdk:sfn:listExecutions", **machine)
    delete = task("arn:aws:states:::aws-sdk:sfn:deleteStateMachine", **machine)
    flow = {
        "StartAt": "Look",
        "States": {
            "Look": {**look, "ResultPath": "$.found", "Next": "Delete"},
            "Delete": {**delete, "ResultPath": None, "End": True},
        },
    }
    outer = created(states, "undertaker", flow)

    found = described(states, states.start_execution(stateMachineArn=outer)["executionArn"])

    assert found["status"] == "SUCCEEDED", found
    assert [row["Name"] for row in json.loads(found["output"])["found"]["Executions"]] == ["last"]
    names = {row["name"] for row in states.list_state_machines()["stateMachines"]}
    assert "undertaker" in names
    assert "doomed" not in names


def test_an_activity_is_taken_and_answered(deployment: Deployment) -> None:
    states = deployment.call.states()
    activity = states.create_activity(name="press")["activityArn"]
    press = {"Type": "Task", "Resource": activity, "End": True}
    machine = created(states, "laundry", {"StartAt": "Press", "States": {"Press": press}})
    execution = states.start_execution(stateMachineArn=machine, input='{"shirts": 3}')

    taken = states.get_activity_task(activityArn=activity, workerName="Ada")
    states.send_task_success(taskToken=taken["taskToken"], output=taken["input"])

    found = described(states, execution["executionArn"])
    assert (found["status"], json.loads(found["output"])) == ("SUCCEEDED", {"shirts": 3})


def test_a_distributed_map_runs_its_items_as_executions(deployment: Deployment) -> None:
    states = deployment.call.states()
    each = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "P",
        "States": {"P": PASS},
    }
    flow = {"Type": "Map", "ItemProcessor": each, "End": True}
    machine = created(states, "shirts", {"StartAt": "Each", "States": {"Each": flow}})
    execution = states.start_execution(stateMachineArn=machine, input="[1, 2, 3]")["executionArn"]

    found = described(states, execution)

    assert (found["status"], json.loads(found["output"])) == ("SUCCEEDED", [1, 2, 3])
    [map_run] = states.list_map_runs(executionArn=execution)["mapRuns"]
    counts = states.describe_map_run(mapRunArn=map_run["mapRunArn"])["itemCounts"]
    assert (counts["total"], counts["succeeded"]) == (3, 3)


def test_an_execution_of_a_state_machine_is_stopped_and_redriven(deployment: Deployment) -> None:
    states = deployment.call.states()
    wait = {"Type": "Wait", "Seconds": 3_600, "End": True}
    machine = created(states, "patient", {"StartAt": "W", "States": {"W": wait}})
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]

    states.stop_execution(executionArn=execution, error="Enough")
    assert described(states, execution)["status"] == "ABORTED"
    states.redrive_execution(executionArn=execution)
    wait_for(lambda: states.describe_execution(executionArn=execution)["redriveCount"] == 1)

    states.stop_execution(executionArn=execution, error="Enough")
    assert described(states, execution)["status"] == "ABORTED"


def test_an_express_execution_runs_in_the_api_with_the_rights_of_tasks(
    deployment: Deployment,
) -> None:
    states = deployment.call.states()
    send = task(
        "arn:aws:states:::sqs:sendMessage",
        QueueUrl=parcels_url(deployment),
        MessageBody="by express",
    )
    definition = {"StartAt": "Send", "States": {"Send": {**send, "End": True}}}
    machine = created(states, "express", definition, type="EXPRESS")

    answer = states.start_sync_execution(stateMachineArn=machine)
    assert answer["status"] == "SUCCEEDED", answer
    assert received(deployment) == "by express"

    tested = states.test_state(definition=json.dumps({**send, "End": True}), roleArn=ROLE)
    assert tested["status"] == "SUCCEEDED", tested
    assert received(deployment) == "by express"


def test_a_caller_without_a_right_to_the_api_may_not_call_step_functions_there(
    deployment: Deployment,
) -> None:
    with pytest.raises(ClientError) as refused:
        deployment.stranger.states().list_state_machines()
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
