"""The running attempt of a task, as the task reads it, and its heartbeats."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import field
from typing import Any, Final, Protocol

from holdfast.api.task_errors import HeartbeatMissed
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import PROGRESS_BYTES_MAX


def _never() -> bool:
    return False


def _nothing() -> None:
    """The progress of a step without a heartbeat that carried one."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The running attempt. `attempt` counts from 1. All attempts of a call have the same
    `idempotency_key`.
    """

    execution: str
    name: str | None
    workflow: str
    task: str
    attempt: int
    idempotency_key: str
    is_over: Callable[[], bool] = field(default=_never, repr=False, compare=False)
    load_progress: Callable[[], Any] = field(default=_nothing, repr=False, compare=False)

    @property
    def progress(self) -> Any:
        """Return the value, as JSON, of the last `heartbeat(value)` of an earlier attempt of this
        call, so that the task continues there; None without one.
        """
        return self.load_progress()

    @property
    def cancelled(self) -> bool:
        """Return True when the engine no longer waits for this attempt: the execution was stopped
        or has continued without it, or the attempt's time-out has passed. A long task should read
        this regularly and return when it is True. In a task that the engine runs itself it becomes
        True only with `heartbeat=`: the task reads the state each third of that time. In a group or
        another function it is always False.
        """
        return self.is_over()

    @property
    def correlation_id(self) -> str:
        """Return the id of the outermost parent execution: it is the same in a workflow and in all
        that it calls.
        """
        from holdfast.trace_ids import root_of  # noqa: PLC0415

        return root_of(self.execution)

    @property
    def traceparent(self) -> str:
        """Return the header of W3C Trace Context, for the requests that this attempt sends."""
        from holdfast.trace_ids import attempt_span, traceparent  # noqa: PLC0415

        return traceparent(self.execution, attempt_span(self.idempotency_key, self.attempt))


#: The execution of a function that runs outside of an engine.
LOCAL_EXECUTION: Final = "local"
_LOCAL = TaskContext(
    execution=LOCAL_EXECUTION, name=None, workflow="", task="", attempt=1, idempotency_key="local"
)
_running: ContextVar[TaskContext] = ContextVar("running_task", default=_LOCAL)


def task_context() -> TaskContext:
    """Return the attempt that is running; outside of an engine one whose execution is `local`."""
    return _running.get()


class Beats(Protocol):
    """Takes the signs of life of one attempt."""

    def beat(self, progress: Any = None) -> None:
        """Record a heartbeat, and the progress in it as JSON. Raises HeartbeatMissed when the
        attempt must end.
        """


class Pulse:
    """The heartbeats of one attempt. They must come at least every `seconds`."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last = clock()
        self._longest = 0.0

    def beat(self, progress: Any = None) -> None:
        """Record a heartbeat. Raises HeartbeatMissed when the last one is too old, so that the
        attempt must end.
        """
        del progress
        now = self._clock()
        self._longest = max(self._longest, now - self._last)
        self._last = now
        if self._longest > self._seconds:
            silence = f"silent for {self._longest:.0f} seconds"
            raise HeartbeatMissed(f"{silence}, and a heartbeat is due every {self._seconds:.0f}")


_pulse: ContextVar[Beats | None] = ContextVar("pulse", default=None)


def heartbeat(progress: object = None) -> None:
    """Report that the running task is alive. Use it in a task that declares `@task(heartbeat=…)`.

    `progress` is a value that becomes JSON, of at most 8 KB. `holdfast show` has the last one, and
    the next attempt gets it as `task_context().progress`.

    Raises HeartbeatMissed when the attempt is over: the last heartbeat is too long ago, so a retry
    may already run; or the engine no longer waits for the attempt, because the execution was
    stopped. In any other task, and outside an engine, it does nothing.
    """
    pulse = _pulse.get()
    if pulse is not None:
        pulse.beat(None if progress is None else _progress_json(progress))


def _progress_json(progress: object) -> Any:
    import json  # noqa: PLC0415 - few tasks report progress

    from pydantic_core import to_jsonable_python  # noqa: PLC0415

    value = to_jsonable_python(progress)
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > PROGRESS_BYTES_MAX:
        raise ValueError(
            f"heartbeat(…) got a progress of {size} bytes as JSON, and {PROGRESS_BYTES_MAX} is the "
            "most: store it in S3 and give its key"
        )
    return value


def is_in_engine() -> bool:
    """Return True while an attempt runs in this context."""
    return _running.get() is not _LOCAL


@contextlib.contextmanager
def running_task(context: TaskContext, pulse: Beats | None = None) -> Iterator[None]:
    token, beating = _running.set(context), _pulse.set(pulse)
    try:
        yield
    finally:
        _running.reset(token)
        _pulse.reset(beating)
