"""A task as an AWS Lambda function, for definitions that were compiled for Step Functions.

    handler = lambda_handler(charge)

The import is quick: pydantic is imported at the first call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias
from urllib.parse import unquote

from holdfast.api.task_context import TaskContext, running_task
from holdfast.api.tasks import Task

LambdaHandler: TypeAlias = Callable[[Mapping[str, Any], Any], Any]


def lambda_handler(task: Task[..., Any]) -> LambdaHandler:
    """Return `handler(event, context)`. The event has the arguments by name; the handler returns
    the result.

    Raises the task's own errors, InvalidArguments and InvalidResult: the state machine sees the
    name of the class as the error. If another caller than a compiled definition invokes the
    function, the execution in `task_context()` is the id of the Lambda request.
    """

    def handler(event: Mapping[str, Any], context: Any) -> Any:
        with running_task(_context(task.name, context)):
            return task.call_json(event)

    return handler


def client_context(context: TaskContext) -> dict[str, Any]:
    """Return the client context for a call of a Lambda function as a task: a field of the call that
    Lambda passes on beside the event.
    """
    return {"custom": {"holdfast": {"context": context_fields(context)}}}


def context_fields(context: TaskContext) -> dict[str, Any]:
    """Return the context as JSON, from which `TaskContext(**…)` makes it again."""
    # The callables belong to this process.
    own = {"is_over", "load_progress"}
    names = [one.name for one in fields(context) if one.name not in own]
    return {name: getattr(context, name) for name in names}


def _context(name: str, context: Any) -> TaskContext:
    called = _called(context)
    if called is not None and "context" in called:
        return TaskContext(**called["context"])
    if called is None:
        request = str(getattr(context, "aws_request_id", "local"))
        return TaskContext(
            execution=request,
            name=None,
            workflow="",
            task=name,
            attempt=1,
            idempotency_key=request,
        )
    execution = unquote(called["execution"])
    # The ARN is, for example,
    # arn:aws:states:eu-west-1:123456789012:execution:order_fulfilment:order-7.
    workflow, _, execution_name = execution.split(":", 6)[-1].partition(":")
    entry = f"{execution} {called['entry']}"
    return TaskContext(
        execution=execution,
        name=execution_name,
        workflow=workflow,
        task=name,
        attempt=int(called["attempt"]),
        idempotency_key=hashlib.sha256(entry.encode()).hexdigest(),
    )


def _called(context: Any) -> Mapping[str, Any] | None:
    """Return the data about the state machine in the client context; None without it."""
    custom = getattr(getattr(context, "client_context", None), "custom", None)
    return custom.get("holdfast") if isinstance(custom, dict) else None
