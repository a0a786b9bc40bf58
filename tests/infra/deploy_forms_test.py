"""Operations on a deployed stack: a notification leads to a form that answers, bulk operations act
on what waits, and what has ended is archived and shown from the archive.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast.runtime.commands.tokens import Token, make_token, parse_keys
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.spread import DUE
from tests.infra.deploy_test import make_due, sweep
from tests.infra.deployed import Deployment, deploy
from tests.infra.ministack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy-forms")]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    chosen = ("forms=on", "question_events=on", "archive=on")
    with deploy(tmp_path_factory.mktemp("forms"), *chosen) as made:
        yield made


def open_link(desk: Deployment, link: str, **fields: str) -> tuple[int, str]:
    """Open the link as a browser does, unsigned; with fields, send its form."""
    url = desk.outputs["ApiUrl"]
    assert link.startswith(f"{url}/forms/"), link
    request = urllib.request.Request(
        f"{desk.cloud.endpoint}{link.removeprefix(url)}",
        urlencode(fields).encode() if fields else None,
        {"Host": url.removeprefix("https://")},
    )
    context = ssl.create_default_context(cafile=str(desk.cloud.certificate))
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def make_pager(desk: Deployment) -> str:
    """Return the URL of a queue that gets the events about questions."""
    queues, bus = desk.cloud.client("sqs"), desk.cloud.client("events")
    url = queues.create_queue(QueueName="pager")["QueueUrl"]
    named = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    pattern = {"source": ["holdfast.questions"], "detail": {"stack": ["Holdfast"]}}
    bus.put_rule(Name="pager", EventPattern=json.dumps(pattern))
    bus.put_targets(Rule="pager", Targets=[{"Id": "pager", "Arn": named["Attributes"]["QueueArn"]}])
    return str(url)


def notified(desk: Deployment, pager: str) -> dict[str, Any]:
    queues = desk.cloud.client("sqs")
    received = wait_for(lambda: queues.receive_message(QueueUrl=pager).get("Messages"))
    return dict(json.loads(received[0]["Body"])["detail"])


def test_a_notification_leads_to_a_form_that_answers_once_and_no_other_link_does(
    desk: Deployment,
) -> None:
    pager = make_pager(desk)
    loan = {"id": "L1", "applicant": "Ada Lovelace", "cents": 5_000_000}
    request = {"workflow": "loan_approval", "name": "loan-1", "input": {"loan": loan}}
    assert desk.call("POST", "/executions", request)[0] == 201
    told = notified(desk, pager)
    assert (told["title"], told["assignee"]) == ("Approve loan L1", "role:credit_manager")
    assert told["details"]["loan"] == loan
    status, page = open_link(desk, told["link"])
    assert status == 200
    assert "Approve loan L1" in page

    for wrong in (f"{told['link'][:-2]}AA", expired(desk, told)):
        status, page = open_link(desk, wrong)
        assert status == 403
        assert "loan" not in page
        assert open_link(desk, wrong, approved="true")[0] == 403

    assert open_link(desk, told["link"], approved="true", note="fine")[0] == 200
    assert open_link(desk, told["link"], approved="false", note="no")[0] == 410
    found = wait_for(lambda: ended(desk))
    assert (found["status"], found["output"]) == ("SUCCEEDED", "approved")
    shown = desk.call("GET", f"/questions/{told['question']}")
    assert shown[0] == 404


def expired(desk: Deployment, told: dict[str, Any]) -> str:
    """Return a link that the stack's own key signed, and whose time is over."""
    secret = desk.outputs["SigningSecret"]
    found = desk.cloud.client("secretsmanager").get_secret_value(SecretId=secret)
    _, _, place = told["question"].partition(":")
    entry, _, attempt = place.partition(".")
    token = Token("default", told["execution"], int(entry), int(attempt), expires_ms=1)
    return f"{desk.outputs['ApiUrl']}/forms/{make_token(token, parse_keys(found['SecretString']))}"


def ended(desk: Deployment) -> dict[str, Any] | None:
    status, found = desk.call("GET", "/executions/loan-1")
    assert status == 200, found
    return None if found["status"] == "RUNNING" else dict(found)


# -- bulk ------------------------------------------------------------------------------------------


def test_a_bulk_pauses_resumes_and_stops_what_waits(desk: Deployment) -> None:
    names = [f"many-{number}" for number in range(3)]
    for name in names:
        loan = {"id": name, "applicant": "Ada Lovelace", "cents": 5_000_000}
        request = {"workflow": "loan_approval", "name": name, "input": {"loan": loan}}
        assert desk.call("POST", "/executions", request)[0] == 201
    for name in names:
        wait_for(lambda name=name: "ask" in waits_for(desk, name))  # type: ignore[misc]
    for operation, filters in (
        ("pause", {"status": "RUNNING"}),
        ("resume", {"paused": "true"}),
        ("stop", {"status": "RUNNING"}),
    ):
        outcomes = bulk(desk, operation, {"workflow": "loan_approval", **filters})
        assert list(outcomes.values()) == ["done"] * 3, (operation, outcomes)
        wait_for(lambda done=operation: all(has(desk, name, done) for name in names))  # type: ignore[misc]


def shown(desk: Deployment, name: str) -> dict[str, Any]:
    status, found = desk.call("GET", f"/executions/{name}")
    assert status == 200, found
    return dict(found)


def waits_for(desk: Deployment, name: str) -> list[str]:
    return [wait["kind"] for wait in shown(desk, name)["waits"]]


def has(desk: Deployment, name: str, operation: str) -> bool:
    found = shown(desk, name)
    if operation == "stop":
        return bool(found["status"] == "ABORTED")
    return ("paused" in found) == (operation == "pause")


def bulk(desk: Deployment, operation: str, filters: dict[str, str]) -> dict[str, str]:
    """Run the bulk operation to its end; return the outcome of each execution."""
    request = {"operation": operation, "filters": filters, "fields": {}, "reason": "a drill"}
    status, accepted = desk.call("POST", "/bulk", request)
    assert status == 200, accepted
    run = accepted["execution"]
    wait_for(lambda: shown(desk, run)["status"] != "RUNNING")
    assert shown(desk, run)["status"] == "SUCCEEDED"
    outcomes: dict[str, str] = {}
    for event in desk.call("GET", f"/executions/{run}/history")[1]["events"]:
        details = event.get("taskSucceededEventDetails", {})
        if details.get("resource") == "bulk:act":
            outcomes |= json.loads(details["output"])["outcomes"]
    return outcomes


# -- the archive -----------------------------------------------------------------------------------


def test_an_ended_execution_is_archived_and_shown_after_its_records_have_expired(
    desk: Deployment,
) -> None:
    before = shown(desk, "loan-1")
    run, history = before["execution"], desk.call("GET", "/executions/loan-1/history")[1]
    records = records_of(desk, run)
    assert not any("ttl" in record for record in records)
    [row] = [row for row in rows_of(desk, keys.archive_partition) if row["run"]["S"] == run]
    make_due(desk, row)
    sweep(desk)
    wait_for(lambda: all("ttl" in record for record in records_of(desk, run)))
    wait_for(lambda: run not in {row["run"]["S"] for row in rows_of(desk, keys.archive_partition)})
    bucket, s3 = desk.outputs["ArchiveBucket"], desk.cloud.client("s3")
    [key] = [
        one["Key"] for one in s3.list_objects_v2(Bucket=bucket)["Contents"] if run in one["Key"]
    ]
    # The same object as that of an execution of long ago, whose records have expired.
    old = f"00{run[2:]}"
    source = {"Bucket": bucket, "Key": key}
    s3.copy_object(Bucket=bucket, Key=keys.archive_key("default", old, 7), CopySource=source)
    found = shown(desk, old)
    assert found["archived"] == f"s3://{bucket}/{keys.archive_key('default', old, 7)}"
    assert (found["status"], found["output"]) == (before["status"], before["output"])
    assert desk.call("GET", f"/executions/{old}/history")[1]["events"] == history["events"]


def records_of(desk: Deployment, run: str) -> list[dict[str, Any]]:
    return _items(desk, "ExecutionsTable", keys.execution("default", run))


def rows_of(desk: Deployment, partition: Callable[[int], str]) -> list[dict[str, Any]]:
    shards = range(DUE.least)
    return [row for shard in shards for row in _items(desk, "MailTable", partition(shard))]


def _items(desk: Deployment, output: str, partition: str) -> list[dict[str, Any]]:
    found = desk.cloud.client("dynamodb").query(
        TableName=desk.outputs[output],
        KeyConditionExpression="pk = :partition",
        ExpressionAttributeValues={":partition": {"S": partition}},
        ConsistentRead=True,
    )
    return list(found["Items"])


def test_no_function_was_denied_anything_or_reported_a_fault(desk: Deployment) -> None:
    lines = desk.log_lines()
    assert not [line for line in lines if "AccessDenied" in line or '"level": "ERROR"' in line]
