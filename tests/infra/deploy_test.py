"""`cdk deploy` for real, onto a loopback cloud that enforces IAM; then one order through the API.

This shows that the template deploys, that the asset runs, that each role allows the calls of its
function, and that the API refuses unauthorised callers. It cannot show AWS itself.
"""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest

from holdfast import resources
from holdfast.runtime.messages import recover
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.spread import DUE
from tests.infra.deployed import Deployment
from tests.infra.ministack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy")]


def order(number: str, *, description: str = "TEA TOWEL") -> dict[str, Any]:
    """Return an order. The last two digits select the outcome of the simulated world: see
    statemachines/fates.py.
    """
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
    """Return every row that leads the sweeper to the execution, as DynamoDB stores it."""
    store, table = deployment.cloud.client("dynamodb"), deployment.outputs["MailTable"]
    return [
        row
        for shard in range(DUE.least)
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
def test_every_route_refuses_unsigned_and_unauthorised_callers(
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


def test_an_order_that_ended_is_measured_by_its_workflow(deployment: Deployment) -> None:
    start(deployment, "700142", order("700102"))
    ended(deployment, "700142")

    def measured() -> list[dict[str, Any]]:
        lines = [line for line in deployment.log_lines("Worker") if '"ExecutionsEnded"' in line]
        return [json.loads(line[line.index("{") :]) for line in lines]

    line = wait_for(measured)[0]
    assert (line["Stack"], line["Workflow"]) == ("Holdfast", "order_fulfilment")
    dimensions = [one["Dimensions"] for one in line["_aws"]["CloudWatchMetrics"]]
    assert dimensions == [[["Stack"]], [["Stack", "Workflow"]]]


def test_an_execution_that_waits_can_be_stopped(deployment: Deployment) -> None:
    start(deployment, "700111", order("700111"))
    parked(deployment, "700111")
    status, answer = deployment.call("POST", "/executions/700111/stop", {"error": "Customer"})
    assert status == 200, answer
    assert ended(deployment, "700111")["status"] == "ABORTED"


def test_an_event_without_a_waiting_execution_is_kept_and_listed(deployment: Deployment) -> None:
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
        "submission_update",
    }


def test_a_paused_limit_holds_an_attempt_and_lets_it_go(deployment: Deployment) -> None:
    def waits(kind: str) -> Any:
        found = execution(deployment, "tides")["waits"]
        return found if kind in {wait["kind"] for wait in found} else None

    def change(**fields: Any) -> Any:
        request = {"reason": "the store is closed", "by": "kim", **fields}
        status, answer = deployment.call("POST", "/limits/app-store", request)
        assert status == 200, answer
        return answer

    change(paused=True)
    update = {"app": "tides", "submission_id": "tides-2.0", "archive": "tides-2.1.ipa"}
    request = {"workflow": "submission_update", "name": "tides", "input": {"update": update}}
    assert deployment.call("POST", "/executions", request)[0] == 201
    [wait] = wait_for(lambda: waits("limit"))
    assert (wait["limit"], wait["paused_by"]) == ("app-store", "kim")
    assert deployment.call("GET", "/limits/app-store")[1]["waiting"] == 1

    change(paused=False)
    wait_for(lambda: waits("event"))
    shown = deployment.call("GET", "/limits/app-store")[1]
    assert (shown["waiting"], len(shown["changes"])) == (0, 1)


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


def test_no_function_was_denied_anything_or_reported_a_fault(deployment: Deployment) -> None:
    # The last test on the stack (deploy_states_test.py is before): it reads what all have logged.
    lines = deployment.log_lines()
    assert any("START RequestId" in line for line in lines)
    assert not [line for line in lines if "AccessDenied" in line or '"level": "ERROR"' in line]
