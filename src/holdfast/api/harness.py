"""The harness replaces the engine while a workflow function runs as plain Python, as in a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from holdfast.api.tasks import Task
    from holdfast.api.workflows import Workflow


TIME_OUT_TOO_SHORT: Final = "a time-out is at least a second"


def time_out_seconds(duration: timedelta) -> float:
    """Return the time limit of a wait or block in seconds. Raises ValueError below a second."""
    if duration < timedelta(seconds=1):
        raise ValueError(TIME_OUT_TOO_SHORT)
    return duration.total_seconds()


class Cancelled(BaseException):
    """Raised by a harness in a cancelled branch where it waits. It is a BaseException, so that the
    workflow's `except Exception` does not catch it.
    """


class ContinueAsNew(BaseException):
    """Raised by `again`: the workflow continues as new with these arguments. It is a BaseException,
    so that the workflow's `except Exception` does not catch it.
    """

    def __init__(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        super().__init__("the workflow goes on as new")
        self.given = args
        self.named = named


class OwnExecution(NamedTuple):
    """The execution that runs a workflow function, as the function can read it."""

    id: str
    name: str
    started: datetime


class Harness(Protocol):
    """Replaces tasks, time and other people while a workflow function runs directly."""

    def run_task(self, task: Task[..., Any], arguments: dict[str, Any], /) -> Any:
        """Return the value that `task` returns for these Python values, by parameter name."""

    def run_workflow(self, workflow: Workflow[..., Any], arguments: dict[str, Any], /) -> Any:
        """Return the value that the child execution returns, or raise its error."""

    def wait(
        self,
        kind: Literal["event", "ask"],
        name: str,
        payload: type[Any],
        /,
        *,
        arguments: Mapping[str, Any],
        timeout_seconds: float | None,
        kept: bool = True,
    ) -> Any:
        """Return a `payload`: the event with this `name`, or the answer to the question with the
        title `name`.

        `arguments` has the `key` of an event, or `assignee` and `details` of a question. Without
        `kept` an event counts only if it was sent after the execution started.
        """

    def sleep(self, seconds: float, /) -> None:
        """Wait for `seconds`; return at once for zero or less."""

    def sleep_until(self, moment: datetime, /) -> None: ...

    def send(
        self, name: str, data: object, /, *, key: str, later: timedelta | datetime | None
    ) -> str | None:
        """Send the event. With `later` send it after that duration or at that moment, and return
        the id of the execution that waits until then.
        """

    def request(
        self, name: str, data: object, /, *, key: str, returns: Any, timeout_seconds: float | None
    ) -> Any:
        """Send the request. Return its reply, a `returns`, or raise the error of its rejection."""

    def reply(self, request: str, value: object, error: Exception | None, /) -> None:
        """Reply to the request of this id, or reject it with the error."""

    def start(
        self,
        workflow: Workflow[..., Any],
        arguments: dict[str, Any],
        /,
        *,
        later: timedelta | datetime | None,
    ) -> str:
        """Start an execution for which nothing waits, and return its id. With `later` it begins
        after that duration or at that moment.
        """

    def stop(self, execution: str, /) -> None:
        """Stop an execution that was started."""

    def own_execution(self) -> OwnExecution:
        """Return the execution that the calling line belongs to."""

    def publish(self, name: str, value: object, /) -> None:
        """Record a value that the workflow publishes."""

    def note(self, attributes: Mapping[str, object], /) -> None:
        """Record changed search attributes."""

    def run_branches(
        self,
        branches: Sequence[Callable[[], Any]],
        /,
        *,
        concurrency: int,
        needed: int | None,
        tolerated: int,
        after: Sequence[Sequence[int]] = (),
        returns_errors: bool = False,
    ) -> list[Any]:
        """Run the branches concurrently. Return their results; None for a branch that failed or was
        cancelled.

        With `concurrency` 0 all may run at once. The call ends when `needed` branches have
        succeeded (None: when all have ended). It fails when more than `tolerated` fail. With
        `returns_errors` it ends then without a failure, and returns the error of each branch that
        failed and BranchCancelled for each that did not end. Branch n begins when the branches
        `after[n]`, which come before it, have ended; with `after` none of the others is given.
        """

    def timeout(self, seconds: float, /) -> AbstractContextManager[None]:
        """Raise BlockTimeout when the block does not end in time."""

    def shielded(self) -> AbstractContextManager[None]: ...


harness: ContextVar[Harness | None] = ContextVar("harness", default=None)
