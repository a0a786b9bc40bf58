"""Jobs that `.sync` tasks began: polled with the answer of their start."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ClientError

from holdfast.integrations import Integrations, jobs
from holdfast.integrations.jobs import JOBS, JobKind
from holdfast.integrations.optimised import STYLE
from holdfast.integrations.shaping import result_of
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


@pytest.mark.parametrize("name", ["sns:publish", "glue:startCrawler"])
def test_a_job_whose_end_cannot_be_read_is_not_started(name: str) -> None:
    result, clients = perform(effect(name, {}, "sync"), {"publish": {}, "start_crawler": {}})

    assert result == TaskFailed(
        "States.Runtime", f"The resource 'arn:aws:states:::{name}' is not supported"
    )
    assert not clients.calls


# -- every kind of job -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", JOBS)
def test_a_poll_is_a_request_of_its_service_and_reads_a_member_of_the_answer(name: str) -> None:
    job = JOBS[name]
    model = _model_of(job.service)
    (operation,) = (
        model.operation_model(one)
        for one in model.operation_names
        if xform_name(one) == job.describe
    )
    assert {ask.member for ask in job.asks} <= operation.input_shape.members.keys()
    assert set(operation.input_shape.required_members) <= {ask.member for ask in job.asks}
    for status in (*job.done, *job.failed):
        answer = _example(operation.output_shape, job, status)
        assert jobs.ending(job, result_of(operation.output_shape, answer, STYLE)) is not None
    answer = _example(operation.output_shape, job, "RUNS")
    assert jobs.ending(job, result_of(operation.output_shape, answer, STYLE)) is None


@functools.cache
def _model_of(service: str) -> Any:
    return Clients({}).model(service)


def _example(shape: Any, job: JobKind, status: str) -> Any:
    """Return an answer of this shape which has only the status, and successful containers."""
    steps = [*job.record.split("."), *job.status.split(".")]
    return _holding(shape, [step for step in steps if step], status)


def _holding(shape: Any, steps: list[str], status: str) -> Any:
    if not steps:
        return status
    if shape.type_name == "list":
        return [_holding(shape.member, steps[1:], status)]
    step = steps[0]
    named = {name[:1].upper() + name[1:]: name for name in shape.members}
    return {named[step]: _holding(shape.members[named[step]], steps[1:], status)}


def test_a_deleted_cluster_has_ended_when_it_is_not_found() -> None:
    gone = ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "DescribeCluster")
    submitted = {"Cluster": {"Name": "c", "Status": "DELETING"}}
    found = poll("eks:deleteCluster", submitted, {"describe_cluster": gone}, {"Name": "c"})
    assert found == TaskSucceeded(submitted)
    refused = ClientError({"Error": {"Code": "AccessDeniedException"}}, "DescribeCluster")
    answers = {"describe_cluster": refused}
    assert poll("eks:deleteCluster", submitted, answers, {"Name": "c"}) == TaskPending()
