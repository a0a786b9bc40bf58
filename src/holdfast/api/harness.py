"""The harness takes the engine's place while a workflow function runs as plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

if TYPE_CHECKING:
    from holdfast.api.tasks import Task, Workflow


TIME_OUT_TOO_SHORT: Final = "a time-out is at least a second"


def time_out_seconds(duration: timedelta) -> float:
    """Return the longest duration of a wait or block in seconds. Raises ValueError below a
    second.
    """
    if duration < timedelta(seconds=1):
        raise ValueError(TIME_OUT_TOO_SHORT)
    return duration.total_seconds()


class Cancelled(BaseException):
    """Raised by a harness in a cancelled line of control that waits; no `except` sees it."""


class ContinueAsNew(BaseException):
    """Raised by `again`: the workflow goes on as new with these arguments. No `except` sees it."""

    def __init__(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        super().__init__("the workflow goes on as new")
        self.given = args
        self.named = named


class Harness(Protocol):
    """The replacement for tasks, time and other people while a workflow function runs directly."""

    def run_task(self, task: Task[..., Any], arguments: dict[str, Any], /) -> Any:
        """The value that `task` returns for these Python values, by parameter name."""

    def run_workflow(self, workflow: Workflow[..., Any], arguments: dict[str, Any], /) -> Any:
        """The value that the child execution returns; raises its error."""

    def wait(
        self,
        kind: Literal["event", "ask"],
        name: str,
        payload: type[Any],
        /,
        *,
        arguments: Mapping[str, Any],
        timeout_seconds: float | None,
    ) -> Any:
        """A `payload`: the event called `name`, or the answer to the question titled `name`.

        `arguments` holds `key` of an event, `assignee` and `details` of a question.
        """

    def sleep(self, seconds: float, /) -> None:
        """Wait for `seconds`; return at once for zero or less."""

    def sleep_until(self, moment: datetime, /) -> None: ...

    def send(self, name: str, data: object, /, *, key: str) -> None:
        """Send the event."""

    def reply(self, request: str, value: object, error: Exception | None, /) -> None:
        """Reply to the request of this id, or reject it with the error."""

    def start(self, workflow: Workflow[..., Any], arguments: dict[str, Any], /) -> str:
        """Start an execution that nothing waits for, and return its id."""

    def stop(self, execution: str, /) -> None:
        """Stop an execution that was started."""

    def publish(self, name: str, value: object, /) -> None:
        """Take note of a value that is readable from outside."""

    def note(self, attributes: Mapping[str, object], /) -> None:
        """Take note of changed search attributes."""

    def run_branches(
        self,
        branches: Sequence[Callable[[], Any]],
        /,
        *,
        concurrency: int,
        needed: int | None,
        tolerated: int,
        after: Sequence[Sequence[int]] = (),
    ) -> list[Any]:
        """The results side by side; None for a branch that failed or was cancelled.

        `concurrency` 0: no bound. `needed` successes end it (None: all must end); more failures
        than `tolerated` fail it. Branch n begins when the branches `after[n]`, all before it, have
        ended; given with neither a bound nor `needed` nor `tolerated`.
        """

    def timeout(self, seconds: float, /) -> AbstractContextManager[None]:
        """Raise BlockTimeout when the block is not over in time."""

    def shielded(self) -> AbstractContextManager[None]: ...


harness: ContextVar[Harness | None] = ContextVar("harness", default=None)
