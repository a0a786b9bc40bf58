"""One attempt out, one result back: the two messages between the engine and a process that runs
the author's code for it.

    engine: attempt_message(attempt) -> JSON     process: read_attempt(JSON), runs the task
    engine: read_result(JSON)                    process: result_message(result) -> JSON

The process has no right to the engine's tables, queues and keys. So the attempt holds whatever the
task needs: its arguments in full, never a reference to a stored value, and the secrets among them
in clear, which the process could not open. The result is all that comes back. Only the engine
writes it to the log, so a result that comes twice, or after the attempt's time-out, changes
nothing: the log refuses it (docs/reference/log.md).

Each message carries its format: during a deploy the two sides may have code of two versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from holdfast.asl import error_names
from holdfast.errors import HoldfastError, NewerFormatError
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX, TRACEBACK_CHARACTERS_MAX
from holdfast.runtime.effects import (
    OwnResult,
    RunTask,
    TaskFailed,
    TaskSucceeded,
    TaskThrottled,
)
from holdfast.runtime.storage.formats import FORMAT_FIELD
from holdfast.runtime.storage.json_values import plain_text, printable

FORMAT: Final = 1

_UNREADABLE: Final = "HF420"


@dataclass(frozen=True, slots=True)
class HandedAttempt:
    """An attempt for another process. `module` is that of the task's function; tasks of two modules
    may have one name. `secrets`: for each sealed text in the arguments, the secret. `seconds_left`:
    so long the engine waits for the result; None without a time-out. It is no time of day, because
    the clocks of the two processes differ.
    """

    effect: RunTask
    module: str
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    seconds_left: float | None = None


def attempt_message(attempt: HandedAttempt) -> dict[str, Any]:
    effect = attempt.effect
    return {
        FORMAT_FIELD: FORMAT,
        "task": effect.name,
        "module": attempt.module,
        "arguments": effect.arguments,
        "tenant": effect.tenant,
        "execution": effect.run,
        "name": effect.run_name,
        "workflow": effect.workflow,
        "entry": effect.entry,
        "attempt": effect.attempt,
        "deadline_ms": effect.deadline_ms,
        "heartbeat_seconds": effect.heartbeat_seconds,
        "is_batch": effect.is_batch,
        "progress": effect.progress,
        "secrets": dict(attempt.secrets),
        "seconds_left": attempt.seconds_left,
    }


def read_attempt(message: Any) -> HandedAttempt:
    """Raises NewerFormatError, and HoldfastError HF420 for a value that is no attempt."""
    _require_format(message, "an attempt")
    try:
        effect = RunTask(
            name=str(message["task"]),
            kind="task",
            arguments=message["arguments"],
            tenant=str(message["tenant"]),
            run=str(message["execution"]),
            run_name=message["name"],
            workflow=str(message["workflow"]),
            entry=int(message["entry"]),
            attempt=int(message["attempt"]),
            deadline_ms=int(message["deadline_ms"]),
            heartbeat_seconds=message["heartbeat_seconds"],
            is_batch=bool(message["is_batch"]),
            # An engine of an earlier release sends none.
            progress=message.get("progress"),
        )
        left, secrets = message.get("seconds_left"), dict(message["secrets"])
        return HandedAttempt(
            effect, str(message["module"]), secrets, None if left is None else float(left)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable("an attempt", type(error).__name__) from None


def result_message(result: OwnResult) -> dict[str, Any]:
    match result:
        case TaskSucceeded(output):
            return {FORMAT_FIELD: FORMAT, "output": output}
        case TaskFailed(error, cause, traceback):
            failed = {"error": error, "cause": cause, "traceback": traceback}
            return {FORMAT_FIELD: FORMAT, "failed": failed}
        case TaskThrottled(retry_after_ms, cause, traceback):
            throttled = {"retry_after_ms": retry_after_ms, "cause": cause, "traceback": traceback}
            return {FORMAT_FIELD: FORMAT, "throttled": throttled}
        case _:
            assert_never(result)


def read_result(message: Any, task: str) -> OwnResult:
    """Return the result of `task`, with its texts cut to what the log takes.

    Raises NewerFormatError, HoldfastError HF420 for a value that is no result, and RequestError
    HF243 and HF244 for an output that cannot be stored.
    """
    what = f"the result of {task}"
    _require_format(message, what)
    match message:
        case {"output": output}:
            plain_text(output, what)
            return TaskSucceeded(output)
        case {"failed": {"error": error, "cause": cause, "traceback": traceback}}:
            return TaskFailed(
                _text(error, ERROR_CHARACTERS_MAX),
                _text(cause, CAUSE_CHARACTERS_MAX),
                _text(traceback, TRACEBACK_CHARACTERS_MAX),
            )
        case {
            "throttled": {"retry_after_ms": int(pause_ms), "cause": cause, "traceback": traceback}
        }:
            return TaskThrottled(
                pause_ms,
                _text(cause, CAUSE_CHARACTERS_MAX),
                _text(traceback, TRACEBACK_CHARACTERS_MAX),
            )
        case _:
            raise _unreadable(what, type(message).__name__)


def ended_without_result(error: str, cause: str) -> TaskFailed:
    """Return the failure of an attempt whose process gave no result. The cause may have a text of
    that process.
    """
    return TaskFailed(error, _text(cause, CAUSE_CHARACTERS_MAX))


def timed_out(cause: str) -> TaskFailed:
    """Return the result of an attempt whose process ended by a time-out of its own."""
    return ended_without_result(error_names.TIMEOUT, cause)


def _require_format(message: Any, what: str) -> None:
    found = message.get(FORMAT_FIELD) if isinstance(message, dict) else None
    if not isinstance(found, int):
        raise _unreadable(what, type(message).__name__)
    if found > FORMAT:
        raise NewerFormatError(what, found, FORMAT)


def _text(value: Any, characters_max: int) -> str | None:
    return None if value is None else printable(str(value))[:characters_max]


def _unreadable(what: str, found: str) -> HoldfastError:
    return HoldfastError(
        _UNREADABLE,
        f"{what} cannot be read: found {found}, expected the message of format {FORMAT}",
        help="deploy the engine and the process that runs its tasks with one version of Holdfast",
    )
