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
    the path of the status in it. `is_gone`: the job has ended when the service does not find it any
    longer, and the response to the start is the result.
    """

    service: str
    describe: str
    asks: tuple[_Ask, ...]
    record: str
    status: str
    done: frozenset[str]
    failed: frozenset[str]
    is_gone: bool = False


_ENDED_BADLY: Final = frozenset({"Failed", "Stopped", "FAILED", "STOPPED", "CANCELLED", "TIMEOUT"})
_NOT_FOUND: Final = "ResourceNotFoundException"
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


def _application(*done: str) -> JobKind:
    return JobKind(
        "emr-serverless",
        "get_application",
        (_Ask("applicationId", "ApplicationId"),),
        record="Application",
        status="State",
        done=frozenset(done),
        failed=frozenset({"TERMINATED"}) - {*done},
    )


def _emr_cluster(done: frozenset[str]) -> JobKind:
    return JobKind(
        "emr",
        "describe_cluster",
        (_Ask("ClusterId", "ClusterId"),),
        record="Cluster",
        status="Status.State",
        done=done,
        failed=_EMR_TERMINATED - done,
    )


def _eks(what: str, *names: str, is_gone: bool) -> JobKind:
    """Return the making or the deletion of a part of EKS. `names` are the fields of its name."""
    return JobKind(
        "eks",
        f"describe_{_snake(what)}",
        tuple(_Ask(f"{name[0].lower()}{name[1:]}", name) for name in names),
        record="",
        status=f"{what}.Status",
        done=frozenset() if is_gone else frozenset({"ACTIVE"}),
        failed=frozenset({"FAILED", "CREATE_FAILED", "DELETE_FAILED", "DEGRADED"}),
        is_gone=is_gone,
    )


_EMR_TERMINATED: Final = frozenset({"TERMINATED", "TERMINATED_WITH_ERRORS"})
_EKS_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "Cluster": ("Name",),
    "FargateProfile": ("ClusterName", "FargateProfileName"),
    "Nodegroup": ("ClusterName", "NodegroupName"),
}
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
    "codebuild:startBuildBatch": JobKind(
        "codebuild",
        "batch_get_build_batches",
        (_Ask("ids", "BuildBatch.Id", is_list=True),),
        record="BuildBatches.0",
        status="BuildBatchStatus",
        done=frozenset({"SUCCEEDED"}),
        failed=_ENDED_BADLY | {"FAULT", "TIMED_OUT"},
    ),
    "bedrock:createModelCustomizationJob": JobKind(
        "bedrock",
        "get_model_customization_job",
        (_Ask("jobIdentifier", "JobArn"),),
        record="",
        status="Status",
        done=frozenset({"Completed"}),
        failed=_ENDED_BADLY,
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
    **{
        f"eks:{verb}{what}": _eks(what, *names, is_gone=verb == "delete")
        for what, names in _EKS_PARTS.items()
        for verb in ("create", "delete")
    },
    "elasticmapreduce:addStep": JobKind(
        "emr",
        "describe_step",
        (_Ask("ClusterId", "ClusterId"), _Ask("StepId", "StepId")),
        record="Step",
        status="Status.State",
        done=frozenset({"COMPLETED"}),
        failed=frozenset({"CANCELLED", "FAILED", "INTERRUPTED"}),
    ),
    "elasticmapreduce:createCluster": _emr_cluster(frozenset({"WAITING"})),
    "elasticmapreduce:terminateCluster": _emr_cluster(_EMR_TERMINATED),
    "emr-containers:deleteVirtualCluster": JobKind(
        "emr-containers",
        "describe_virtual_cluster",
        (_Ask("id", "Id"),),
        record="VirtualCluster",
        status="State",
        done=frozenset({"TERMINATED"}),
        failed=frozenset({"ARRESTED"}),
    ),
    "emr-containers:startJobRun": JobKind(
        "emr-containers",
        "describe_job_run",
        (_Ask("id", "Id"), _Ask("virtualClusterId", "VirtualClusterId")),
        record="JobRun",
        status="State",
        done=frozenset({"COMPLETED"}),
        failed=_ENDED_BADLY,
    ),
    "emr-serverless:createApplication": _application("CREATED"),
    "emr-serverless:deleteApplication": _application("TERMINATED"),
    "emr-serverless:startApplication": _application("STARTED"),
    "emr-serverless:stopApplication": _application("STOPPED"),
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
    except ClientError as error:
        is_gone = job.is_gone and error.response["Error"].get("Code") == _NOT_FOUND
        return TaskSucceeded(started) if is_gone else None
    except BotoCoreError:
        return None
    operation = client.meta.service_model.operation_model(
        client.meta.method_to_api_mapping[job.describe]
    )
    return ending(job, result_of(operation.output_shape, answer, STYLE))


def ending(job: JobKind, description: Any) -> TaskSucceeded | TaskFailed | None:
    """Return the end of the job by the service's description; None while it runs."""
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
