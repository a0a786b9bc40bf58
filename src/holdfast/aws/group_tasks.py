"""Tasks of a group: the engine hands one attempt to the group's function and takes one result back.

The worker calls the function and waits for its result, as it waits for a task of its own. So all
that protects an inline attempt protects this one, and nothing new is stored:

    the worker crashes before the call         its lease runs out; another worker makes the attempt
    ... after the call, before its record      the same: the function runs the attempt a second time
    the answer is lost                         the worker calls again, with the same idempotency key
    the function crashes or times out          the attempt fails, and the task's `retry` decides
    a result comes after the time-out          the worker no longer waits, and drops it
    the task runs on after its time-out        the function ends its process a second later

Calling without waiting would save the worker's time. But then the result needs a way back: a queue
of the engine to which the role of each group may write, and with it the results of other groups.
It would also cost a record, a message and a delivery more for each attempt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from holdfast.api.sealing import Seals, sealed_again
from holdfast.api.task_errors import GroupFailed, InvalidArguments, InvalidResult
from holdfast.api.tasks import Task
from holdfast.aws.clients import Clients
from holdfast.aws.faults import THROTTLED, fault
from holdfast.deployment import Deployment
from holdfast.errors import HoldfastError, RequestError, VaultFault
from holdfast.limits import GROUP_PAYLOAD_BYTES_MAX
from holdfast.runtime.effects import (
    SECRET_UNAVAILABLE,
    OwnResult,
    RunTask,
    TaskFailed,
    TaskSucceeded,
)
from holdfast.runtime.handed_attempts import (
    HandedAttempt,
    attempt_message,
    ended_without_result,
    read_result,
    timed_out,
)
from holdfast.sealed import holds_sealed

#: After this many calls whose answers were lost the attempt fails.
LOST_MAX: Final = 3
#: The time between two calls of a function that is busy with other attempts.
BUSY_SECONDS: Final = 1
#: Lambda's error name when a function ran for longer than its time-out. Older runtimes give no
#: name, so the text of the error must be compared, too.
_TIMED_OUT: Final = "Sandbox.Timedout"
_TIMED_OUT_TEXT: Final = "Task timed out after"
#: The errors of a body that is not JSON. Python's parser raises RecursionError for JSON that is
#: nested too deeply.
_NO_JSON: Final = (ValueError, RecursionError)

#: A function that calls the Lambda function of a group with the bytes. It returns Lambda's
#: response: whether the function ended with an error of its own, and its body. It raises botocore's
#: errors.
CallsGroup: TypeAlias = Callable[[str, bytes], tuple[bool, bytes]]


class GroupTasks:
    """Performs the tasks of groups by `call`, and all other tasks of the deployment itself.

    `pause` waits for so many seconds; `clock` gives seconds since the epoch.
    """

    def __init__(
        self,
        deployment: Deployment,
        call: CallsGroup,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._deployment = deployment
        self._call = call
        self._pause = pause
        self._clock = clock

    def perform(self, effect: RunTask) -> OwnResult:
        task = self._deployment.in_group(effect)
        if task is None:
            return self._deployment.run_task(effect)
        seals = Seals(self._deployment.vault, effect.tenant)
        try:
            return self._answered(task, _handed(task, effect, seals), seals)
        except VaultFault as refused:
            return TaskFailed(SECRET_UNAVAILABLE, refused.message)

    def _answered(self, task: Task[..., Any], attempt: HandedAttempt, seals: Seals) -> OwnResult:
        """Call the function until it answers. A call for which it has no place has not begun the
        attempt, and a lost answer may belong to an attempt that has run.
        """
        assert task.group is not None
        lost = 0
        while True:
            seconds_left = attempt.effect.deadline_ms / 1_000 - self._clock()
            sent = _payload(attempt, seconds_left)
            if len(sent) > GROUP_PAYLOAD_BYTES_MAX:
                return _too_large(task, len(sent))
            try:
                is_error, body = self._call(task.group, sent)
            except HoldfastError as error:
                return _failed(task, error.message)
            except Exception as error:  # noqa: BLE001  # whatever botocore raises
                refused = fault(f"the call of the group {task.group}", error)
                lost += refused.code != THROTTLED
                is_over = seconds_left <= BUSY_SECONDS
                if refused.retry == "never" or lost >= LOST_MAX or is_over:
                    return _failed(task, refused.message)
                self._pause(BUSY_SECONDS)
                continue
            return _crashed(task, body) if is_error else _read(task, body, seals)


def _handed(task: Task[..., Any], effect: RunTask, seals: Seals) -> HandedAttempt:
    given = effect.arguments if effect.is_batch else [effect.arguments]
    # Read the types of the parameters only for arguments with a secret, because this needs
    # pydantic, which takes long to import.
    for arguments in filter(holds_sealed, given):
        try:
            task.boundary.open_secrets(arguments, seals)
        except ValueError:
            # The function finds the same error and reports the name of the argument.
            continue
    return HandedAttempt(effect, task.function.__module__, seals.handed())


def _payload(attempt: HandedAttempt, seconds_left: float) -> bytes:
    if attempt.effect.is_timed:
        attempt = replace(attempt, seconds_left=round(seconds_left, 3))
    message = attempt_message(attempt)
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def _read(task: Task[..., Any], body: bytes, seals: Seals) -> OwnResult:
    try:
        result = read_result(json.loads(body), task.name)
        if isinstance(result, TaskSucceeded):
            return TaskSucceeded(sealed_again(result.output, seals))
    except RequestError as error:
        return TaskFailed(InvalidResult.__name__, error.message)
    except HoldfastError as error:
        return _failed(task, error.message)
    except _NO_JSON:
        return _failed(task, "its answer is no JSON")
    return result


def _crashed(task: Task[..., Any], body: bytes) -> TaskFailed:
    """Return the failure of an attempt whose function ended without a result."""
    try:
        told = json.loads(body)
    except _NO_JSON:
        told = None
    words: Mapping[str, Any] = told if isinstance(told, dict) else {}
    kind = str(words.get("errorType", "Lambda gave no error type"))
    text = str(words.get("errorMessage", ""))
    if kind == _TIMED_OUT or _TIMED_OUT_TEXT in text:
        return timed_out(f"the function of the group {task.group}: {text}")
    return _failed(task, f"{kind}: {text}")


def _failed(task: Task[..., Any], found: str) -> TaskFailed:
    return ended_without_result(
        GroupFailed.__name__, f"{task.name}: the function of the group {task.group}: {found}"
    )


def _too_large(task: Task[..., Any], found: int) -> TaskFailed:
    return TaskFailed(
        InvalidArguments.__name__,
        f"{task.name}: the attempt has {found} bytes as JSON, and the function of a group takes "
        f"{GROUP_PAYLOAD_BYTES_MAX}: pass the name of an object in S3",
    )


def lambda_call(clients: Clients, functions: str) -> CallsGroup:
    """Return the caller of deployed functions. `functions`: the value of ENV_GROUP_FUNCTIONS.

    Raises HoldfastError HF422 for a group without a function.
    """
    arns = dict(pair.split("=", 1) for pair in functions.split(",") if pair)

    def call(group: str, payload: bytes) -> tuple[bool, bytes]:
        arn = arns.get(group)
        if arn is None:
            raise HoldfastError(
                "HF422",
                "this stack has no such function",
                help=f"Holdfast(..., groups={{{group!r}: Group()}}), and deploy again",
            )
        answer = clients.get("functions").invoke(FunctionName=arn, Payload=payload)
        return "FunctionError" in answer, answer["Payload"].read()

    return call
