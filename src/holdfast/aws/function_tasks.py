"""Tasks that run on an existing Lambda function: the call, and the reading of its result.

The worker invokes the function and waits for its end, as for a task of its own. The event of the
function is an object with the arguments by name, including defaults. The result is converted to the
declared type, so that workflows compute with values of that type.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.api.boundary import Misfit
from holdfast.api.lambdas import client_context
from holdfast.api.runs_on import Lambda
from holdfast.api.task_errors import InvalidArguments, InvalidResult
from holdfast.api.tasks import Task
from holdfast.aws.tasks import Elsewhere, TaskPerformer
from holdfast.deployment import Deployment
from holdfast.errors import RequestError
from holdfast.runtime.effects import RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast.runtime.storage.json_values import plain_text
from holdfast.task_runs import context_of


def elsewhere_of(deployment: Deployment) -> Elsewhere:
    """Return the function that finds tasks which run on Lambda functions of their own."""

    def find(effect: RunTask) -> Callable[[TaskPerformer], TaskResult] | None:
        task = deployment.runs_on_function(effect)
        return None if task is None else partial(_run, task, effect)

    return find


def _run(task: Task[..., Any], effect: RunTask, call: TaskPerformer) -> TaskResult:
    """Call the Lambda function of `task`, and return its result or its error."""
    assert isinstance(task.runs_on, Lambda)
    try:
        event = task.boundary.normalise_arguments(effect.arguments)
    except Misfit as misfit:
        return TaskFailed(InvalidArguments.__name__, f"{task.name}({misfit})")
    invocation = {
        "FunctionName": task.runs_on.arn,
        "Payload": event,
        "ClientContext": client_context(context_of(effect)),
    }
    invoke = replace(effect, kind="service", name="lambda:invoke", arguments=invocation)
    match call(invoke):
        case TaskSucceeded(output):
            return _result(task, output)
        case TaskFailed() as failed:
            return _in_own_words(failed)
        case other:
            return other


def _result(task: Task[..., Any], response: Any) -> TaskSucceeded | TaskFailed:
    try:
        output = task.boundary.dump_result(response["Payload"])
        plain_text(output, f"the result of {task.name}")
    except Misfit as misfit:
        return TaskFailed(InvalidResult.__name__, f"{task.name}: {misfit}")
    except RequestError as error:
        # Return the error as the task's failure. If it were raised, a value that cannot be stored
        # would make every delivery of the message fail.
        return TaskFailed(InvalidResult.__name__, error.message)
    return TaskSucceeded(output)


def _in_own_words(failed: TaskFailed) -> TaskFailed:
    """Return the failure with the text of the exception as its cause, as for a task in Python.

    A Lambda runtime returns an object instead: the exception's type, its text and its stack trace.
    """
    try:
        told = json.loads(failed.cause or "")
    except ValueError:
        return failed
    if not isinstance(told, dict) or not isinstance(told.get("errorMessage"), str):
        return failed
    return replace(failed, cause=told["errorMessage"])
