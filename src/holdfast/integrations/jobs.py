"""Jobs that a `.sync` task has started: polled until they have ended.

AWS learns of the end by events; Holdfast polls the service instead. The result of the task is the
service's own description of the job. Source: AWS docs, "Run a Job (.sync)" and the pages of the
integrations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.integrations.clients import ServiceClients
from holdfast.integrations.optimised import STYLE
from holdfast.integrations.shaping import result_of, to_text
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded


@dataclass(frozen=True, slots=True)
class _Ask:
    """One member of the poll's request. Its value comes from the response to the start or, if
    absent there, from the task's arguments.
    """

    member: str
    path: str
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job. `record` is the part of the description that is the task's result, `status`
    the path of the status in it.
    """

    service: str
    describe: str
    asks: tuple[_Ask, ...]
    record: str
    status: str
    done: frozenset[str]
    failed: frozenset[str]


_ENDED_BADLY: Final = frozenset({"Failed", "Stopped", "FAILED", "STOPPED", "CANCELLED", "TIMEOUT"})
_SAGEMAKER_DONE: Final = frozenset({"Completed"})


def _sagemaker(what: str) -> JobKind:
    name = f"{what}Name"
    return JobKind(
        service="sagemaker",
        describe=f"describe_{_snake(what)}",
        asks=(_Ask(name, name),),
        record="",
        status=f"{what}Status",
        done=_SAGEMAKER_DONE,
        failed=_ENDED_BADLY,
    )


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


JOBS: Final[Mapping[str, JobKind]] = {
    "athena:startQueryExecution": JobKind(
        "athena",
        "get_query_execution",
        (_Ask("QueryExecutionId", "QueryExecutionId"),),
        record="",
        status="QueryExecution.Status.State",
        done=frozenset({"SUCCEEDED"}),
        failed=_ENDED_BADLY,
    ),
    "batch:submitJob": JobKind(
        "batch",
        "describe_jobs",
        (_Ask("jobs", "JobId", is_list=True),),
        record="Jobs.0",
        status="Status",
        done=frozenset({"SUCCEEDED"}),
        failed=_ENDED_BADLY,
    ),
    "codebuild:startBuild": JobKind(
        "codebuild",
        "batch_get_builds",
        (_Ask("ids", "Build.Id", is_list=True),),
        record="Builds.0",
        status="BuildStatus",
        done=frozenset({"SUCCEEDED"}),
        failed=_ENDED_BADLY | {"FAULT", "TIMED_OUT"},
    ),
    "databrew:startJobRun": JobKind(
        "databrew",
        "describe_job_run",
        (_Ask("Name", "Name"), _Ask("RunId", "RunId")),
        record="",
        status="State",
        done=frozenset({"SUCCEEDED"}),
        failed=_ENDED_BADLY,
    ),
    "ecs:runTask": JobKind(
        "ecs",
        "describe_tasks",
        (_Ask("cluster", "Tasks.0.ClusterArn"), _Ask("tasks", "Tasks.0.TaskArn", is_list=True)),
        record="Tasks.0",
        status="LastStatus",
        done=frozenset({"STOPPED"}),
        failed=frozenset(),
    ),
    "emr-serverless:startJobRun": JobKind(
        "emr-serverless",
        "get_job_run",
        (_Ask("applicationId", "ApplicationId"), _Ask("jobRunId", "JobRunId")),
        record="JobRun",
        status="State",
        done=frozenset({"SUCCESS"}),
        failed=_ENDED_BADLY,
    ),
    "glue:startJobRun": JobKind(
        "glue",
        "get_job_run",
        (_Ask("JobName", "JobName"), _Ask("RunId", "JobRunId")),
        record="JobRun",
        status="JobRunState",
        done=frozenset({"SUCCEEDED"}),
        failed=_ENDED_BADLY | {"ERROR", "EXPIRED"},
    ),
    "mediaconvert:createJob": JobKind(
        "mediaconvert",
        "get_job",
        (_Ask("Id", "Job.Id"),),
        record="",
        status="Job.Status",
        done=frozenset({"COMPLETE"}),
        failed=frozenset({"ERROR", "CANCELED"}),
    ),
    "sagemaker:createLabelingJob": _sagemaker("LabelingJob"),
    "sagemaker:createProcessingJob": _sagemaker("ProcessingJob"),
    "sagemaker:createTrainingJob": _sagemaker("TrainingJob"),
    "sagemaker:createTransformJob": _sagemaker("TransformJob"),
}


def poll(
    effect: RunTask, started: Mapping[str, Any], clients: ServiceClients
) -> TaskSucceeded | TaskFailed | None:
    """Return the end of the job; None while it runs. `started` is the result of `perform`.

    A failed poll returns None, so the job is polled again until the task's own time-out. Raises
    KeyError for a target that is not in `JOBS`.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    job = JOBS[effect.name]
    question = {ask.member: _value_of(ask, started, effect.arguments or {}) for ask in job.asks}
    try:
        client = clients.get(job.service, effect.credentials)
        answer = getattr(client, job.describe)(**question)
    except (BotoCoreError, ClientError):
        return None
    operation = client.meta.service_model.operation_model(
        client.meta.method_to_api_mapping[job.describe]
    )
    return _judged(job, result_of(operation.output_shape, answer, STYLE))


def _judged(job: JobKind, description: Any) -> TaskSucceeded | TaskFailed | None:
    record = _at(description, job.record)
    status = _at(record, job.status)
    if status in job.done and not _has_failed_container(record):
        return TaskSucceeded(record)
    if status in job.done or status in job.failed:
        return TaskFailed(error_names.TASK_FAILED, to_text(record))
    return None


def _has_failed_container(record: Any) -> bool:
    """Return True when a container failed. ECS reports every ended task as stopped, so only exit
    codes show failures.
    """
    containers = record.get("Containers", ()) if "LastStatus" in record else ()
    return any(container.get("ExitCode", 1) != 0 for container in containers)


def _value_of(ask: _Ask, started: Any, arguments: Any) -> Any:
    value = _at(started, ask.path)
    if value is None:
        value = _at(arguments, ask.path)
    return [value] if ask.is_list else value


def _at(value: Any, path: str) -> Any:
    """Return the value at a path such as "Tasks.0.TaskArn", or None."""
    for step in path.split(".") if path else ():
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value
