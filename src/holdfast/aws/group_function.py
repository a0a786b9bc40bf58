"""The function of a group of tasks: one attempt in, one result out.

It imports the modules that define the group's tasks, and nothing of the engine's storage: its role
has no right to the engine's tables, queues and keys.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from holdfast import resources
from holdfast.api.registry import Registry
from holdfast.api.sealing import HandedVault
from holdfast.api.tasks import GroupFailed, InvalidResult
from holdfast.limits import GROUP_PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import OwnResult, TaskFailed
from holdfast.runtime.handed_attempts import read_attempt, result_message
from holdfast.task_runs import packages_of, run_attempt

RunsAttempt: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]


def group_handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return _runs_attempt()(event)


@functools.cache
def _runs_attempt() -> RunsAttempt:
    from holdfast.aws.telemetry import log_to_cloudwatch  # noqa: PLC0415

    # This comes before the import of the author's modules: a Powertools Logger in them looks for
    # log handlers when it is created.
    log_to_cloudwatch(os.environ)
    modules = os.environ[resources.ENV_MODULES].split(",")
    return runs_attempt(Registry.from_modules(modules))


def runs_attempt(registry: Registry) -> RunsAttempt:
    """Return the function that runs one attempt of a task. It raises the errors of
    `read_attempt`.
    """
    packages = packages_of(registry.tasks.values())

    def run(message: Mapping[str, Any]) -> dict[str, Any]:
        attempt = read_attempt(message)
        name = attempt.effect.name
        task = registry.task(name, attempt.module)
        if task is None:
            cause = f"the modules of the group have no task {name}: deploy again"
            return result_message(TaskFailed(GroupFailed.__name__, cause))
        vault = HandedVault(attempt.secrets)
        return _bounded(run_attempt(task, attempt.effect, vault, packages), name)

    return run


def _bounded(result: OwnResult, task: str) -> dict[str, Any]:
    """Return the message of the result. Lambda drops a larger answer, and its error names no
    task.
    """
    message = result_message(result)
    found = len(json.dumps(message).encode())
    if found <= GROUP_PAYLOAD_BYTES_MAX:
        return message
    cause = (
        f"the result of {task} has {found} bytes as JSON, and the function of a group returns "
        f"{GROUP_PAYLOAD_BYTES_MAX}: store it in S3 and return its name"
    )
    return result_message(TaskFailed(InvalidResult.__name__, cause))
