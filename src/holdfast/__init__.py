"""Durable workflows for AWS, written as plain typed Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.keyed import FailedExecution
from holdfast.api.limits import (
    Limit,
    Throttled,
    Trip,
    limit_service,
    per_hour,
    per_minute,
    per_second,
)
from holdfast.api.requests import Request
from holdfast.api.runs_on import BatchJob, Fargate, Lambda, Worker
from holdfast.api.surface import (
    BlockTimeout,
    BranchCancelled,
    CompensationFailed,
    GroupFailed,
    HeartbeatMissed,
    InvalidArguments,
    InvalidResult,
    Pure,
    RequestCancelled,
    Retry,
    StepInterrupted,
    Task,
    TaskContext,
    TaskError,
    Undo,
    WaitTimeout,
    Workflow,
    again,
    ask,
    compensating,
    days,
    each,
    execution_id,
    execution_name,
    execution_started,
    first,
    heartbeat,
    hours,
    migrates,
    minutes,
    note,
    parallel,
    publish,
    pure,
    receive,
    request,
    role,
    seconds,
    send,
    shielded,
    sleep,
    sleep_until,
    start,
    stop,
    task,
    task_context,
    timeout,
    wait_for_condition,
    wait_for_event,
    workflow,
)
from holdfast.api.tools import Tools, choice

if TYPE_CHECKING:
    from holdfast.api.batches import Batch
    from holdfast.api.dag import Dag, dag, step
    from holdfast.api.graph_model import Step, from_input, from_step
    from holdfast.api.lambdas import lambda_handler
    from holdfast.api.schedules import Schedule
    from holdfast.api.step_types import Approval, Rejected, StepType, step_type
    from holdfast.boto import client
    from holdfast.remote.async_client import AsyncClient, AsyncHandle
    from holdfast.remote.client import Client, Handle
    from holdfast.remote.errors import (
        ExecutionFailed,
        NotPublished,
        PublishedTimeout,
        ReplyTimeout,
        RequestRejected,
        ResultTimeout,
    )

__all__ = [
    "Approval",
    "AsyncClient",
    "AsyncHandle",
    "Batch",
    "BatchJob",
    "BlockTimeout",
    "BranchCancelled",
    "Client",
    "CompensationFailed",
    "Dag",
    "ExecutionFailed",
    "FailedExecution",
    "Fargate",
    "GroupFailed",
    "Handle",
    "HeartbeatMissed",
    "InvalidArguments",
    "InvalidResult",
    "Lambda",
    "Limit",
    "NotPublished",
    "PublishedTimeout",
    "Pure",
    "Rejected",
    "ReplyTimeout",
    "Request",
    "RequestCancelled",
    "RequestRejected",
    "ResultTimeout",
    "Retry",
    "Schedule",
    "Step",
    "StepInterrupted",
    "StepType",
    "Task",
    "TaskContext",
    "TaskError",
    "Throttled",
    "Tools",
    "Trip",
    "Undo",
    "WaitTimeout",
    "Worker",
    "Workflow",
    "again",
    "ask",
    "choice",
    "client",
    "compensating",
    "dag",
    "days",
    "each",
    "execution_id",
    "execution_name",
    "execution_started",
    "first",
    "from_input",
    "from_step",
    "heartbeat",
    "hours",
    "lambda_handler",
    "limit_service",
    "migrates",
    "minutes",
    "note",
    "parallel",
    "per_hour",
    "per_minute",
    "per_second",
    "publish",
    "pure",
    "receive",
    "request",
    "role",
    "seconds",
    "send",
    "shielded",
    "sleep",
    "sleep_until",
    "start",
    "step",
    "step_type",
    "stop",
    "task",
    "task_context",
    "timeout",
    "wait_for_condition",
    "wait_for_event",
    "workflow",
]


#: Names that are imported when they are first used, because each import makes a cold start slower.
#: Most modules of workflows need no boto3, no HTTP client, no graph and no schedule.
_LATER = {
    "Approval": "holdfast.api.step_types",
    "AsyncClient": "holdfast.remote.async_client",
    "AsyncHandle": "holdfast.remote.async_client",
    "Batch": "holdfast.api.batches",
    "Client": "holdfast.remote.client",
    "Dag": "holdfast.api.dag",
    "ExecutionFailed": "holdfast.remote.errors",
    "Handle": "holdfast.remote.client",
    "NotPublished": "holdfast.remote.errors",
    "PublishedTimeout": "holdfast.remote.errors",
    "Rejected": "holdfast.api.step_types",
    "ReplyTimeout": "holdfast.remote.errors",
    "RequestRejected": "holdfast.remote.errors",
    "ResultTimeout": "holdfast.remote.errors",
    "Schedule": "holdfast.api.schedules",
    "Step": "holdfast.api.graph_model",
    "StepType": "holdfast.api.step_types",
    "client": "holdfast.boto",
    "dag": "holdfast.api.dag",
    "from_input": "holdfast.api.graph_model",
    "from_step": "holdfast.api.graph_model",
    "lambda_handler": "holdfast.api.lambdas",
    "step": "holdfast.api.dag",
    "step_type": "holdfast.api.step_types",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
