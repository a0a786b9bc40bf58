"""Jobs that `.sync` tasks began: polled with the answer of their start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.integrations import Integrations
from holdfast.runtime.effects import RunTask, TaskFailed, TaskPending, TaskResult, TaskSucceeded
from tests.unit.integrations_kit import Clients, effect, perform


def poll(name: str, submitted: Any, answers: dict[str, Any], arguments: Any = None) -> TaskResult:
    asked: RunTask = replace(effect(name, arguments, "sync"), is_poll=True, submitted=submitted)
    return Integrations(Clients(answers), _nobody).perform(asked)  # type: ignore[arg-type]


def _nobody(*_: Any) -> Any:
    raise AssertionError("Step Functions was asked")


def build(status: str) -> dict[str, Any]:
    return {"batch_get_builds": {"builds": [{"id": "b1", "buildStatus": status}]}}


STARTED = {"Build": {"Id": "b1"}}


def test_a_job_that_runs_is_pending() -> None:
    assert poll("codebuild:startBuild", STARTED, build("IN_PROGRESS")) == TaskPending()


def test_a_job_that_is_done_results_in_its_description() -> None:
    found = poll("codebuild:startBuild", STARTED, build("SUCCEEDED"))
    assert isinstance(found, TaskSucceeded)
    assert found.output["BuildStatus"] == "SUCCEEDED"


@pytest.mark.parametrize("status", ["FAILED", "STOPPED", "TIMED_OUT"])
def test_a_job_that_ended_badly_fails_its_task(status: str) -> None:
    found = poll("codebuild:startBuild", STARTED, build(status))
    assert isinstance(found, TaskFailed)
    assert found.error == "States.TaskFailed"
    assert status in str(found.cause)


def test_fields_that_the_start_did_not_answer_are_taken_from_the_arguments() -> None:
    run = {"get_job_run": {"JobRun": {"Id": "r1", "JobRunState": "SUCCEEDED"}}}
    found = poll("glue:startJobRun", {"JobRunId": "r1"}, run, {"JobName": "j"})
    assert isinstance(found, TaskSucceeded)


def test_a_job_that_cannot_be_polled_fails_its_task() -> None:
    found = poll("nobody:startAnything", {}, {})
    assert isinstance(found, TaskFailed)
    assert found.error == "States.Runtime"


@pytest.mark.parametrize("name", ["elasticmapreduce:createCluster", "eks:createCluster"])
def test_a_job_whose_end_cannot_be_read_is_not_started(name: str) -> None:
    result, clients = perform(effect(name, {}, "sync"), {"run_job_flow": {}, "create_cluster": {}})

    assert result == TaskFailed(
        "States.Runtime", f"The resource 'arn:aws:states:::{name}' is not supported"
    )
    assert not clients.calls
