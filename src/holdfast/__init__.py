"""Durable workflows for AWS, written as plain typed Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.batches import Batch
from holdfast.api.dag import Dag, dag, step
from holdfast.api.graph_model import Step, from_input, from_step
from holdfast.api.lambdas import lambda_handler
from holdfast.api.limits import (
    Limit,
    Throttled,
    Trip,
    limit_service,
    per_hour,
    per_minute,
    per_second,
)
from holdfast.api.surface import (
    BlockTimeout,
    CompensationFailed,
    InvalidArguments,
    InvalidResult,
    Pure,
    Retry,
    Task,
    TaskContext,
    TaskError,
    Undo,
    WaitTimeout,
    Workflow,
    ask,
    compensating,
    days,
    each,
    first,
    hours,
    minutes,
    parallel,
    pure,
    role,
    seconds,
    shielded,
    sleep,
    sleep_until,
    task,
    task_context,
    timeout,
    wait_for_event,
    workflow,
)

if TYPE_CHECKING:
    from holdfast.boto import client

__all__ = [
    "Batch",
    "BlockTimeout",
    "CompensationFailed",
    "Dag",
    "InvalidArguments",
    "InvalidResult",
    "Limit",
    "Pure",
    "Retry",
    "Step",
    "Task",
    "TaskContext",
    "TaskError",
    "Throttled",
    "Trip",
    "Undo",
    "WaitTimeout",
    "Workflow",
    "ask",
    "client",
    "compensating",
    "dag",
    "days",
    "each",
    "first",
    "from_input",
    "from_step",
    "hours",
    "lambda_handler",
    "limit_service",
    "minutes",
    "parallel",
    "per_hour",
    "per_minute",
    "per_second",
    "pure",
    "role",
    "seconds",
    "shielded",
    "sleep",
    "sleep_until",
    "step",
    "task",
    "task_context",
    "timeout",
    "wait_for_event",
    "workflow",
]


def __getattr__(name: str) -> Any:
    """`client` alone is found at its first use: the rest of this package needs no boto3."""
    if name == "client":
        from holdfast.boto import client  # noqa: PLC0415

        return client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
