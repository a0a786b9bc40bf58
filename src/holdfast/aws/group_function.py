"""The function of a group of tasks: one attempt in, one result out.

It imports the modules that define the group's tasks, and nothing of the engine's storage: its role
has no right to the engine's tables, queues and keys.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from holdfast import resources
from holdfast.api.registry import Registry
from holdfast.api.sealing import HandedVault
from holdfast.api.task_errors import GroupFailed, InvalidResult
from holdfast.limits import GROUP_PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import OwnResult, TaskFailed
from holdfast.runtime.handed_attempts import read_attempt, result_message
from holdfast.task_runs import packages_of, run_attempt

RunsAttempt: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]


_logger: Final = logging.getLogger("holdfast.tasks")
#: The process ends this long after the time-out of the attempt. The worker has recorded the
#: time-out by then, so the late end changes nothing.
_GRACE_SECONDS: Final = 1


def group_handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    end = functools.partial(_end_process, event)
    with ended_in_time(event.get("seconds_left"), end):
        return _runs_attempt()(event)


@contextmanager
def ended_in_time(seconds_left: float | None, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` when the block runs on after the engine has stopped waiting for it.

    A task that hangs would be billed to the function's own time-out, and would hold a place of the
    group and a thread of the worker.
    """
    if seconds_left is None:
        yield
        return
    timer = threading.Timer(max(0.0, seconds_left) + _GRACE_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end_process(event: Mapping[str, Any]) -> None:
    keys = {"execution_id": event.get("execution"), "task": event.get("task")}
    _logger.error("the attempt runs on after its time-out, and its process ends", extra=keys)
    sys.stdout.flush()
    os._exit(1)


@functools.cache
def _runs_attempt() -> RunsAttempt:
    from holdfast.aws.telemetry import log_to_cloudwatch  # noqa: PLC0415

    # Set up logging before the import of the user's modules. A Powertools Logger in such a module
    # looks for log handlers when it is created.
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
