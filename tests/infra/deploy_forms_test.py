"""A question on a deployed stack: its notification has a link, and the form behind it answers."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast.runtime.commands.tokens import Token, make_token, parse_keys
from tests.infra.deployed import Deployment, deploy
from tests.infra.ministack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("deploy-forms")]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deploy(tmp_path_factory.mktemp("forms"), "forms=on", "question_events=on") as made:
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
