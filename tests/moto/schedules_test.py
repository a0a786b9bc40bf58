"""Schedules on the local cloud: declared in code, and by command against a running `serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import resources
from holdfast.errors import RequestError, WorkflowError
from holdfast.local.clock import VirtualClock
from holdfast.local.cloud import LocalCloud
from holdfast.local.pump import LambdaContext
from holdfast.local.stack import LocalStack, deployment_of, local_stack
from tests.moto.conftest import Shell

# One local cloud at a time in a process, and one group runs in one process.
pytestmark = pytest.mark.xdist_group("serve")

#: 08:00:00 UTC on a Friday.
START_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
MODULE = """
from pydantic import SecretStr
from holdfast import Schedule, hours, task, workflow

@task
def told(text: str) -> str:
    return text

@workflow(schedule=Schedule(cron="0 9 * * MON-FRI", zone="Europe/Berlin", time_as="due"))
def report(due: str) -> str:
    return told(due)

@workflow
def login(user: str, password: SecretStr) -> str:
    return told(user)
"""


def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> str:
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def sweep(stack: LocalStack[LocalCloud]) -> None:
    stack.host.sweeper(LambdaContext(resources.SWEEPER, "sweeper", stack.cloud.clock))


def ask(stack: LocalStack[LocalCloud], make: Any) -> Any:
    return stack.host.perform(make)


def test_a_schedule_of_the_code_starts_its_workflow_on_the_local_cloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = written(tmp_path, monkeypatch, "scheduled_by_code", MODULE)
    with local_stack(deployment_of([name]), VirtualClock(START_MS)) as stack:
        sweep(stack)
        # Friday at 09:00 local time is 08:00 UTC: the next one is on Monday.
        stack.pump.run_until_idle(until_ms=START_MS + 4 * 24 * HOUR_MS)
        front = stack.host.front
        found = ask(stack, front.describe("default", "report-20270118T0800Z"))
        assert (found["status"], found["output"]) == ("SUCCEEDED", "2027-01-18T08:00:00.000Z")
        assert ask(stack, front.schedule("default", "report"))["started"] == 1
        assert stack.pump.failures == type(stack.pump.failures)()


def test_a_secret_of_a_schedule_is_stored_sealed_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = written(tmp_path, monkeypatch, "scheduled_secret", MODULE)
    with local_stack(deployment_of([name]), VirtualClock(START_MS)) as stack:
        front = stack.host.front
        request = {
            "name": "nightly",
            "workflow": "login",
            "every": 3_600,
            "input": {"user": "ann", "password": "hunter2"},
        }
        shown = ask(stack, front.create_schedule("default", request))
        assert ask(stack, front.create_schedule("default", request))["name"] == "nightly"
        assert shown["input"] == {"user": "ann", "password": "<secret 7 bytes>"}
        table = stack.cloud.names.mail_table
        stored = stack.cloud.clients.get("store").scan(TableName=table)["Items"]
        assert "hunter2" not in str(stored)
        with pytest.raises(RequestError, match="HF210"):
            wrong = {**request, "name": "other", "input": {"user": "ann"}}
            ask(stack, front.create_schedule("default", wrong))
        stack.pump.run_until_idle(until_ms=START_MS + 2 * HOUR_MS)
        found = ask(stack, front.describe("default", "nightly-20270115T0900Z"))
        assert (found["status"], found["output"]) == ("SUCCEEDED", "ann")


@pytest.mark.parametrize(
    ("given", "code"),
    [('{"user": "a", "password": "x"}', "HF082"), ('{"user": 1, "password": "x"}', "HF210")],
)
def test_code_gives_a_schedule_no_secret_and_no_input_that_does_not_fit(
    given: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = f"@workflow(schedule=Schedule(every=hours(1), input={given}))\ndef login"
    text = MODULE.replace("@workflow\ndef login", declared)
    with pytest.raises((WorkflowError, RequestError)) as caught:
        deployment_of([written(tmp_path, monkeypatch, f"scheduled_{code.lower()}", text)])
    assert caught.value.code == code


@pytest.mark.xdist_group("serve")
def test_the_commands_create_show_hold_and_delete_a_schedule(shell: Shell) -> None:
    given = '{"doc_id": "d1", "signers": ["ada"]}'
    create = ("schedule", "create", "signing", "document_signing", "--input", given)
    assert shell(*create, "--cron", "0 9 * * MON-FRI", "--zone", "Europe/Berlin") == 0
    assert "the schedule signing starts next at 20" in shell.printed
    assert shell("schedule", "list") == 0
    assert "0 9 * * MON-FRI Europe/Berlin" in shell.printed
    reason = ("--reason", "holidays", "--by", "ann")
    assert shell("schedule", "pause", "signing", *reason) == 0
    assert shell("schedule", "show", "signing") == 0
    assert "by ann: holidays" in shell.printed
    assert shell("schedule", "resume", "signing", *reason) == 0
    assert shell("schedule", "backfill", "signing", "--since", "14d") == 0
    assert "makes up for times up to 20" in shell.printed
    assert shell.json("schedule", "show", "signing")["times"]
    assert shell("schedule", "delete", "signing") == 0
    assert shell("schedule", "show", "signing") == 1
    assert "HF245" in shell.complaints
    assert shell(*create, "--every", "90s") == 2
    assert "HF246" in shell.complaints
