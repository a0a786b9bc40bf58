"""Executions that failed in an outage are retried: by the command line, and by boto3."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from tests.moto import contract_workflows as contracts
from tests.moto.conftest import PATIENCE_SECONDS, Shell

pytestmark = pytest.mark.xdist_group("retry")

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:contract_payment"
EXECUTION = MACHINE.replace("stateMachine", "execution")
#: How many executions fail. The slow run has more than a page of a listing.
FAILED = (10, pytest.param(130, marks=pytest.mark.slow))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(deployment_of(["tests.moto.contract_workflows"]), port=0) as served:
        yield served.url


def start(shell: Shell, name: str) -> int:
    return shell(
        "start", "contract_payment", "--name", name, "--input", json.dumps({"contract": name})
    )


def has_ended(execution: Any) -> bool:
    return bool(execution["status"] != "RUNNING")


def has_succeeded(execution: Any) -> bool:
    return bool(execution["status"] == "SUCCEEDED")


def test_the_command_line_says_that_a_name_has_failed_and_retries_it(shell: Shell) -> None:
    contracts.break_down()
    assert start(shell, "contract-7") == 0
    shell.until(has_ended, "show", "contract-7")
    assert start(shell, "contract-7") == 1
    assert shell.printed == (
        "contract-7 exists and has FAILED (CardDeclined); "
        "`holdfast retry contract-7` goes on from the failed step\n"
    )
    contracts.mend()
    assert shell("retry", "contract-7", "--reason", "the bank is back") == 0
    assert "to go on from" in shell.printed
    ended = shell.until(has_succeeded, "show", "contract-7")
    assert ended["output"] == "reserved contract-7: 500"
    assert contracts.CALLS == {"reserve": 1, "charge": 2}
    assert start(shell, "contract-7") == 0
    assert shell("retry", "contract-7") == 1
    assert "SUCCEEDED and cannot be retried" in shell.complaints
    assert shell("history", f"{EXECUTION}:contract-7") == 0
    assert "the bank is back" in shell.printed.replace("\n", " ")


@pytest.mark.parametrize("failed", FAILED)
def test_boto3_redrives_every_execution_of_a_workflow_that_failed(
    url: str, shell: Shell, failed: int
) -> None:
    contracts.break_down()
    states = holdfast.client(url)
    names = [f"outage-{number}" for number in range(failed)]
    for name in names:
        given = json.dumps({"contract": name})
        states.start_execution(stateMachineArn=MACHINE, name=name, input=given)
    arns = [f"{EXECUTION}:{name}" for name in names]
    until(states, arns, "FAILED")
    contracts.mend()
    for arn in arns:
        assert states.describe_execution(executionArn=arn)["redriveStatus"] == "REDRIVABLE"
        states.redrive_execution(executionArn=arn)

    until(states, arns, "SUCCEEDED")
    assert {"reserve": failed, "charge": 2 * failed} == contracts.CALLS
    assert shell.json("show", names[-1])["retries"] == 1
    with pytest.raises(states.exceptions.ExecutionNotRedrivable):
        states.redrive_execution(executionArn=arns[0])
    listed = states.get_paginator("list_executions").paginate(stateMachineArn=MACHINE)
    found = {row["name"] for page in listed for row in page["executions"]}
    assert found.issuperset(names)


def until(states: Any, arns: list[str], status: str) -> None:
    """Waits until each execution has the status. A redrive is stored first, and done later."""
    deadline = time.monotonic() + 6 * PATIENCE_SECONDS
    for arn in arns:
        while (found := states.describe_execution(executionArn=arn)["status"]) != status:
            assert time.monotonic() < deadline, (arn, found)
