"""`cdk deploy` for real, onto a loopback cloud that enforces IAM; then one order through the API,
and state machines through the protocol of Step Functions.

What this shows: the template deploys, the asset runs, each role allows what its function does, and
the API refuses who may not call it. What it cannot show is AWS itself.
"""

from __future__ import annotations

import json
import os
import platform
import random
import string
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from holdfast import limits, resources
from holdfast.runtime import keys
from holdfast.runtime.messages import recover
from tests.infra.ministack import (
    ACCOUNT,
    REGION,
    Caller,
    Ministack,
    grant_batches,
    running,
    wait_for,
)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy")]

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CDK_SECONDS_MAX = 240
HOST_SETTINGS = (
    f"architecture={ {'aarch64': 'arm64'}.get(platform.machine(), platform.machine()) }",
    f"python={sys.version_info.major}.{sys.version_info.minor}",
)
STACK = "Holdfast"
# The queue that a managed policy lets state machines send to; it belongs to the user, not to us.
PARCELS = "parcels"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/recorded-only"
TERMINAL = {"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"}


@dataclass(frozen=True)
class Deployment:
    cloud: Ministack
    outputs: dict[str, str]
    call: Caller
    stranger: Caller
    anonymous: Caller

    def function(self, name: str) -> dict[str, Any]:
        functions = self.cloud.client("lambda").list_functions()["Functions"]
        [found] = [f for f in functions if f"-{name}Function" in f["FunctionName"]]
        return dict(found)

    def log_lines(self, function: str = "") -> list[str]:
        logs = self.cloud.client("logs")
        return [
            event["message"]
            for group in logs.describe_log_groups()["logGroups"]
            if f"{function}FunctionLog" in group["logGroupName"]
            for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
        ]


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    directory = tmp_path_factory.mktemp("ministack")
    with running(directory) as cloud:
        cdk(cloud, directory, "bootstrap", f"aws://{ACCOUNT}/{REGION}")
        outputs = directory / "outputs.json"
        policies = f"task_policies={make_parcels(cloud)}"
        cdk(
            cloud,
            directory,
            *("deploy", "--require-approval=never", f"--outputs-file={outputs}"),
            *("--context", policies),
        )
        grant_batches(cloud, STACK)
        yield deployed(cloud, json.loads(outputs.read_text())[STACK])


def make_parcels(cloud: Ministack) -> str:
    """-> the ARN of the policy that allows to send to the queue."""
    queues = cloud.client("sqs")
    url = queues.create_queue(QueueName=PARCELS)["QueueUrl"]
    arn = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    return cloud.policy(
        "send-parcels",
        {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": arn["QueueArn"]},
    )


def cdk(cloud: Ministack, directory: Path, *arguments: str) -> None:
    if not (ROOT / "node_modules" / "aws-cdk").exists():
        subprocess.run([BIN / "npm", "ci"], cwd=ROOT, check=True, timeout=CDK_SECONDS_MAX)
    program = [BIN / "node", ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"]
    settings = [option for setting in HOST_SETTINGS for option in ("--context", setting)]
    subprocess.run(
        [*program, *arguments, *settings, "--output", directory / "cdk.out"],
        cwd=ROOT,
        env={**cloud.environment(), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        check=True,
        timeout=CDK_SECONDS_MAX,
    )


def deployed(cloud: Ministack, outputs: dict[str, str]) -> Deployment:
    url = outputs["ApiUrl"]
    api_id = url.removeprefix("https://").partition(".")[0]
    api = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{api_id}/*"
    bus = f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/{outputs['BusName']}"
    clerk = cloud.user(
        "clerk", {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": api}
    )
    stranger = cloud.user(
        "stranger", {"Effect": "Allow", "Action": "events:PutEvents", "Resource": bus}
    )
    return Deployment(
        cloud,
        outputs,
        call=Caller(cloud, url, clerk),
        stranger=Caller(cloud, url, stranger),
        anonymous=Caller(cloud, url, None),
    )


def order(number: str, *, description: str = "TEA TOWEL") -> dict[str, Any]:
    """The last two digits choose what the simulated world does: see statemachines/fates.py."""
    return {
        "id": number,
        "placed_at": "2026-03-02 09:00:00",
        "customer_id": "4001",
        "country": "Norway",
        "lines": [{"sku": "LH01", "description": description, "qty": 2, "unit_pence": 450}],
    }


def start(deployment: Deployment, name: str, given: dict[str, Any]) -> None:
    request = {"workflow": "order_fulfilment", "name": name, "input": {"order": given}}
    status, answer = deployment.call("POST", "/executions", request)
    assert status == 201, answer


def execution(deployment: Deployment, name: str) -> dict[str, Any]:
    status, answer = deployment.call("GET", f"/executions/{name}")
    assert status == 200, answer
    return dict(answer)


def ended(deployment: Deployment, name: str) -> dict[str, Any]:
    def once_ended() -> dict[str, Any] | None:
        found = execution(deployment, name)
        return None if found["status"] == "RUNNING" else found

    return dict(wait_for(once_ended))


def parked(deployment: Deployment, name: str) -> dict[str, Any]:
    """Once it waits for its bank."""

    def once_waiting() -> dict[str, Any] | None:
        found = execution(deployment, name)
        return found if "event" in {wait["kind"] for wait in found["waits"]} else None

    return dict(wait_for(once_waiting))


def sweep(deployment: Deployment) -> None:
    name = deployment.function("Sweeper")["FunctionName"]
    answer = deployment.cloud.client("lambda").invoke(FunctionName=name, Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()


def due_rows(deployment: Deployment, run: str) -> list[dict[str, Any]]:
    """Every row by which the sweeper would come to the execution, as DynamoDB stores it."""
    store, table = deployment.cloud.client("dynamodb"), deployment.outputs["MailTable"]
    return [
        row
        for shard in range(limits.DUE_SHARDS)
        for row in store.query(
            TableName=table,
            KeyConditionExpression="pk = :partition",
            ExpressionAttributeValues={":partition": {"S": keys.due_partition(shard)}},
            ConsistentRead=True,
        )["Items"]
        if row["run"]["S"] == run
    ]


def make_due(deployment: Deployment, row: dict[str, Any]) -> None:
    """Puts a row where the next sweep looks, as if its time had come."""
    store, table = deployment.cloud.client("dynamodb"), deployment.outputs["MailTable"]
    _, _, what = row["sk"]["S"].partition("#")
    store.put_item(TableName=table, Item={**row, "sk": {"S": f"{1:015d}#{what}"}})
    store.delete_item(TableName=table, Key={name: row[name] for name in ("pk", "sk")})


@pytest.mark.parametrize("route", resources.ROUTES)
def test_every_route_refuses_who_does_not_sign_and_who_may_not_call(
    deployment: Deployment, route: str
) -> None:
    method, path = route.replace("{id}", "x").split(" ")
    body: dict[str, Any] | None = {} if method == "POST" else None
    assert deployment.anonymous(method, path, body)[0] == 403
    assert deployment.stranger(method, path, body)[0] == 403


def test_an_order_waits_for_its_bank_takes_the_event_and_ships(deployment: Deployment) -> None:
    start(deployment, "700109", order("700109"))
    [wait] = parked(deployment, "700109")["waits"]
    assert (wait["event"], wait["key"]) == ("bank.confirmed", "payment-700109")

    detail = {
        "name": "bank.confirmed",
        "key": "payment-700109",
        "data": {"payment_id": "payment-700109", "settled": True},
    }
    entry = {
        "Source": "bank",
        "DetailType": resources.EVENT_DETAIL_TYPE,
        "Detail": json.dumps(detail),
        "EventBusName": deployment.outputs["BusName"],
    }
    bank = deployment.cloud.client("events", deployment.stranger.credentials)
    assert bank.put_events(Entries=[entry])["FailedEntryCount"] == 0

    found = ended(deployment, "700109")
    assert found["status"] == "SUCCEEDED"
    assert found["output"]["status"] == "shipped"
    events = deployment.call("GET", "/executions/700109/history")[1]["events"]
    numbered = [event["id"] for event in events if "id" in event]
    assert numbered == list(range(1, len(numbered) + 1))


def test_a_large_order_goes_through_the_bucket(deployment: Deployment) -> None:
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=300_000))
    start(deployment, "700100", order("700100", description=noise))
    assert ended(deployment, "700100")["output"]["status"] == "shipped"
    bucket = deployment.outputs["BlobsBucket"]
    assert deployment.cloud.client("s3").list_objects_v2(Bucket=bucket)["KeyCount"] > 0


def test_a_transient_error_is_retried_after_a_delayed_message(deployment: Deployment) -> None:
    start(deployment, "700103", order("700103"))
    assert ended(deployment, "700103")["output"]["status"] == "shipped"


def test_an_execution_that_waits_can_be_stopped(deployment: Deployment) -> None:
    start(deployment, "700111", order("700111"))
    parked(deployment, "700111")
    status, answer = deployment.call("POST", "/executions/700111/stop", {"error": "Customer"})
    assert status == 200, answer
    assert ended(deployment, "700111")["status"] == "ABORTED"


def test_an_event_that_nobody_awaits_is_kept_and_listed(deployment: Deployment) -> None:
    data = {"payment_id": "payment-1", "settled": True}
    request = {"name": "bank.confirmed", "key": "payment-1", "data": data}
    assert deployment.call("POST", "/events", request)[0] == 200
    listed = deployment.call("GET", "/events")[1]["events"]
    assert "payment-1" in {event["key"] for event in listed}


def test_ended_executions_are_listed(deployment: Deployment) -> None:
    start(deployment, "700102", order("700102"))
    ended(deployment, "700102")

    def names() -> set[str]:
        path = "/executions?workflow=order_fulfilment&status=SUCCEEDED"
        return {row["name"] for row in deployment.call("GET", path)[1]["executions"]}

    wait_for(lambda: "700102" in names())


def test_the_deployed_workflows_are_those_of_the_settings(deployment: Deployment) -> None:
    found = deployment.call("GET", "/workflows")[1]["workflows"]
    assert {item["workflow"] for item in found} == {
        "order_fulfilment",
        "loan_approval",
        "document_signing",
    }


def test_a_sweep_removes_the_watch_row_of_an_execution_that_has_ended(
    deployment: Deployment,
) -> None:
    start(deployment, "700128", order("700128"))  # its retry parks it: it is watched
    run = ended(deployment, "700128")["execution"]
    [row] = due_rows(deployment, run)
    make_due(deployment, row)

    sweep(deployment)

    # In no place at all: a row that the sweeper may not work off is moved, not left where it was.
    assert due_rows(deployment, run) == []


def test_a_dead_letter_goes_round_through_the_single_queue(deployment: Deployment) -> None:
    start(deployment, "700115", order("700115"))
    run = parked(deployment, "700115")["execution"]
    queues = deployment.cloud.client("sqs")
    dead = deployment.function("Sweeper")["Environment"]["Variables"][resources.ENV_WORK_DLQ_URL]
    queues.send_message(QueueUrl=dead, MessageBody=json.dumps(recover("default", run)))

    sweep(deployment)

    wait_for(lambda: deployment.log_lines("WorkerSingle"))
    counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = queues.get_queue_attributes(QueueUrl=dead, AttributeNames=counts)["Attributes"]
    assert set(found.values()) == {"0"}


def parcel_machine(url: str) -> dict[str, Any]:
    """JSONPath: heavy parcels are announced and wait for somebody's word; light ones pass."""
    send = {"QueueUrl": url, "MessageBody.$": "$.parcel"}
    ask = {"QueueUrl": url, "MessageBody": {"token.$": "$$.Task.Token"}}
    return {
        "StartAt": "Weigh",
        "States": {
            "Weigh": {"Type": "Pass", "Parameters": {"parcel.$": "$.id", "grams.$": "$.grams"}, "Next": "Heavy"},
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
    return {"Type": "Task", "Resource": resource, "Parameters": arguments, "End": True}


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


def test_a_task_may_not_do_what_no_policy_allows(deployment: Deployment) -> None:
    states = deployment.call.states()
    secret = task("arn:aws:states:::aws-sdk:sqs:listQueues")
    machine = created(states, "curious", {"StartAt": "Look", "States": {"Look": secret}})
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]

    found = described(states, execution)

    assert (found["status"], found["error"]) == ("FAILED", "Sqs.SqsException")


def test_a_state_machine_starts_another_and_waits_for_its_end(deployment: Deployment) -> None:
    states = deployment.call.states()
    light = created(
        states, "light", {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    )
    start = task(
        "arn:aws:states:::states:startExecution.sync:2", StateMachineArn=light, Input={"n": 1}
    )
    machine = created(states, "outer", {"StartAt": "Start", "States": {"Start": start}})
    execution = states.start_execution(stateMachineArn=machine)["executionArn"]

    found = described(states, execution)

    assert found["status"] == "SUCCEEDED", found
    assert json.loads(found["output"])["Output"] == {"n": 1}


def test_an_express_execution_runs_in_the_api_with_the_rights_of_tasks(
    deployment: Deployment,
) -> None:
    states = deployment.call.states()
    send = task(
        "arn:aws:states:::sqs:sendMessage",
        QueueUrl=parcels_url(deployment),
        MessageBody="by express",
    )
    definition = {"StartAt": "Send", "States": {"Send": send}}
    machine = created(states, "express", definition, type="EXPRESS")

    answer = states.start_sync_execution(stateMachineArn=machine)
    assert answer["status"] == "SUCCEEDED", answer
    assert received(deployment) == "by express"

    tested = states.test_state(definition=json.dumps(send))
    assert tested["status"] == "SUCCEEDED", tested
    assert received(deployment) == "by express"


def test_who_may_not_call_the_api_may_not_call_step_functions_there(
    deployment: Deployment,
) -> None:
    with pytest.raises(ClientError) as refused:
        deployment.stranger.states().list_state_machines()
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_no_function_was_denied_anything_or_reported_a_fault(deployment: Deployment) -> None:
    # The last test of the module: it reads what all the others have logged.
    lines = deployment.log_lines()
    assert any("START RequestId" in line for line in lines)
    assert not [line for line in lines if "AccessDenied" in line or '"level": "ERROR"' in line]
