"""One attempt of a task of the author: its arguments in, its result or error out.

Every process that runs the author's code runs it here: the worker, the laptop, a worker of a pool
and the function of a group. So this module imports nothing of the engine's storage, whose import
would lengthen the cold start of a function that never reads a log.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.api.sealing import Seals, Vault
from holdfast.api.task_context import Beats, Pulse, TaskContext, running_task
from holdfast.api.task_errors import HeartbeatMissed, InvalidResult, TaskError
from holdfast.api.tasks import Task
from holdfast.api.throttling import retry_after
from holdfast.api.tracebacks import error_name, secrets_near, traceback_of
from holdfast.asl import error_names
from holdfast.errors import RequestError, VaultFault
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX
from holdfast.runtime.effects import (
    SECRET_UNAVAILABLE,
    OwnResult,
    RunTask,
    TaskFailed,
    TaskSucceeded,
    TaskThrottled,
)
from holdfast.runtime.storage.json_values import plain_text, printable

#: The logger of tasks. `serve` and the worker function show its lines. Another program must
#: configure `logging` to show them.
_logger: Final = logging.getLogger("holdfast.tasks")
_logger.addHandler(logging.NullHandler())
_LOGGED_CHARACTERS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Outside:
    """The engine as an attempt sees it. `pulse` takes the attempt's heartbeats; `is_over` returns
    True once the engine no longer waits for the attempt; `load_progress` returns the progress of
    earlier attempts, and `save_progress` stores what a failed attempt has reported last. Without
    `load_progress`, the message of the attempt has the progress.
    """

    pulse: Beats | None
    is_over: Callable[[], bool]
    load_progress: Callable[[], Any] | None = None
    save_progress: Callable[[], None] = lambda: None


class StoredPulse(Pulse):
    """The heartbeats of one attempt that runs in this process. Their progress is stored by
    `store`, which returns False when it could not be stored. `look` returns True once the engine no
    longer waits for the attempt.

    A third of `seconds` passes between two puts, and between two looks, because each costs a
    request. So the progress that is stored after a crash may be that much older.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float],
        store: Callable[[Any], bool],
        look: Callable[[], bool],
    ) -> None:
        super().__init__(seconds, clock)
        self._clock = clock
        self._pause = seconds / 3
        self._store = store
        self._look = look
        self._next = 0.0
        self._next_look = clock() + self._pause
        self._is_over = False
        self._unsaved: Any = None

    def beat(self, progress: Any = None) -> None:
        super().beat()
        if self.is_over():
            raise HeartbeatMissed("the execution no longer waits for this attempt")
        if progress is not None:
            self._unsaved = progress
        if self._clock() >= self._next:
            self.save()

    def is_over(self) -> bool:
        if not self._is_over and self._clock() >= self._next_look:
            self._next_look = self._clock() + self._pause
            self._is_over = self._look()
        return self._is_over

    def save(self) -> None:
        if self._unsaved is None:
            return
        # Also after a failure: in an outage each heartbeat would otherwise wait for its own tries.
        self._next = self._clock() + self._pause
        if self._store(self._unsaved):
            self._unsaved = None


def packages_of(tasks: Iterable[Task[..., Any]]) -> frozenset[str]:
    """Return the top-level packages of the author."""
    return frozenset(task.function.__module__.partition(".")[0] for task in tasks)


def context_of(effect: RunTask) -> TaskContext:
    """Return the context of an attempt. Every attempt of one step has the same idempotency key, so
    a service that receives the key again can ignore the second call.
    """
    return TaskContext(
        execution=effect.run,
        name=effect.run_name,
        workflow=effect.workflow,
        task=effect.name,
        attempt=effect.attempt,
        idempotency_key=f"{effect.run}.{effect.entry}",
        load_progress=lambda: effect.progress,
    )


def run_attempt(
    task: Task[..., Any],
    effect: RunTask,
    vault: Vault,
    packages: frozenset[str],
    outside: Outside | None = None,
) -> OwnResult:
    """Runs user code. Whatever it raises becomes the error of the attempt.

    Error: the exception's class name. Cause: its text. The idempotency key is that of the entry, so
    every attempt and every repetition of one step has the same. `packages`: those whose frames the
    traceback shows. `outside`: how the attempt and the engine hear of each other when the engine is
    in another process.
    """
    seals = Seals(vault, effect.tenant)
    context = context_of(effect)
    if outside is not None:
        context = replace(context, is_over=outside.is_over)
        if outside.load_progress is not None:
            context = replace(context, load_progress=outside.load_progress)
    try:
        pulse = _pulse_of(effect) if outside is None else outside.pulse
        with running_task(context, pulse):
            # Give the task a copy. If it changes its arguments, the state of the execution must not
            # change with them.
            arguments = json.loads(json.dumps(effect.arguments))
            if effect.is_batch:
                found = task.call_batch_json(arguments, seals)
                return TaskSucceeded([_outcome(one, effect.name, seals) for one in found])
            output = task.call_json(arguments, seals)
            if pulse is not None:
                pulse.beat()
    except KeyboardInterrupt:
        # The user pressed Ctrl-C, so the task has not failed.
        raise
    except VaultFault as fault:
        return TaskFailed(SECRET_UNAVAILABLE, fault.message)
    except HeartbeatMissed as missed:
        _save_progress(outside)
        return TaskFailed(error_names.HEARTBEAT_TIMEOUT, str(missed))
    except BaseException as error:  # noqa: BLE001  # user code may raise anything
        # Catch every exception. asyncio's CancelledError is a BaseException, too, and must not end
        # the processing of the whole batch.
        _save_progress(outside)
        with running_task(context):
            return _failure(error, task, seals, packages)
    try:
        plain_text(output, f"the result of {effect.name}")
    except RequestError as error:
        # Return the error as the task's failure. If it were raised, a value that cannot be stored
        # would make every delivery of the message fail.
        return TaskFailed(InvalidResult.__name__, error.message)
    except ValueError:
        return TaskFailed(InvalidResult.__name__, "the result holds a number of too many digits")
    return TaskSucceeded(output)


def _save_progress(outside: Outside | None) -> None:
    """Store the progress of a failed attempt, where the next one continues."""
    if outside is not None:
        outside.save_progress()


def _failure(
    error: BaseException, task: Task[..., Any], seals: Seals, packages: frozenset[str]
) -> TaskFailed | TaskThrottled:
    from holdfast.api.error_fields import cause_of_error  # noqa: PLC0415 - most attempts succeed

    secrets = secrets_near(error)

    def shown(text: str) -> str:
        return printable(seals.scrubbed(text, secrets))

    cause = cause_of_error(error, shown)
    frames = traceback_of(error, packages)
    traceback = None if frames is None else shown(frames)
    pause = retry_after(error, task.limits, datetime.now(UTC))
    if pause is not None:
        return TaskThrottled(int(pause / timedelta(milliseconds=1)), cause, traceback)
    name = printable(error_name(error))[:ERROR_CHARACTERS_MAX]
    _logger.warning(
        "the attempt failed: %s: %s",
        name,
        cause[:_LOGGED_CHARACTERS_MAX],
        extra={"exception_name": name, "exception": traceback or ""},
    )
    return TaskFailed(name, cause, traceback)


def _outcome(found: Any, name: str, seals: Seals) -> dict[str, Any]:
    """Return the JSON form of one item of a batch's result."""
    if not isinstance(found, TaskError):
        try:
            plain_text(found, f"a result of {name}")
        except (RequestError, ValueError) as error:
            return {"error": InvalidResult.__name__, "cause": str(error)[:CAUSE_CHARACTERS_MAX]}
        return {"output": found}
    from holdfast.api.error_fields import cause_of_error  # noqa: PLC0415 - as in `_failure`

    return {
        "error": printable(error_name(found))[:ERROR_CHARACTERS_MAX],
        "cause": cause_of_error(found, lambda text: printable(seals.scrubbed(text))),
    }


def _pulse_of(effect: RunTask) -> Pulse | None:
    seconds = effect.heartbeat_seconds
    return None if seconds is None else Pulse(seconds, time.monotonic)
