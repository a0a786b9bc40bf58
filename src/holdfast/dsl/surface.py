"""What a workflow is written with. Outside the engine all of it is plain Python.

A workflow function is never run by the engine: the compiler reads its source. It does run when a
test calls it directly, and then tasks are called, branches run in order, and `compensating` undoes
in reverse order. Time and other people are not there, so a `harness` may stand in for them.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from holdfast.dsl.tasks import (
    CompensationFailed,
    Harness,
    InvalidArguments,
    InvalidResult,
    Pure,
    Retry,
    Task,
    TaskContext,
    TaskError,
    WaitTimeout,
    Workflow,
    harness,
    pure,
    running_task,
    task,
    task_context,
    workflow,
)
from holdfast.errors import WorkflowError

__all__ = [
    "CompensationFailed",
    "Harness",
    "InvalidArguments",
    "InvalidResult",
    "Pure",
    "Retry",
    "Task",
    "TaskContext",
    "TaskError",
    "Undo",
    "WaitTimeout",
    "Workflow",
    "ask",
    "compensating",
    "days",
    "each",
    "harness",
    "hours",
    "minutes",
    "parallel",
    "pure",
    "role",
    "running_task",
    "seconds",
    "sleep",
    "task",
    "task_context",
    "wait_for_event",
    "workflow",
]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")


# Durable calls.


@overload
def parallel(a: Callable[[], A], b: Callable[[], B], /) -> tuple[A, B]: ...
@overload
def parallel(a: Callable[[], A], b: Callable[[], B], c: Callable[[], C], /) -> tuple[A, B, C]: ...
@overload
def parallel(
    a: Callable[[], A], b: Callable[[], B], c: Callable[[], C], d: Callable[[], D], /
) -> tuple[A, B, C, D]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    /,
) -> tuple[A, B, C, D, E]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    /,
) -> tuple[A, B, C, D, E, F]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    g: Callable[[], G],
    /,
) -> tuple[A, B, C, D, E, F, G]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    g: Callable[[], G],
    h: Callable[[], H],
    /,
) -> tuple[A, B, C, D, E, F, G, H]: ...
def parallel(*branches: Callable[[], Any]) -> tuple[Any, ...]:
    """Runs the branches side by side; the first failure fails them all."""
    return tuple(branch() for branch in branches)


def each(
    items: Iterable[T],
    function: Callable[[T], R],
    /,
    *,
    concurrency: int = 0,  # noqa: ARG001 - a direct run is sequential
) -> list[R]:
    """Runs `function` once per item, at most `concurrency` side by side (0: no bound)."""
    return [function(item) for item in items]


def sleep(duration: timedelta, /) -> None:
    """Parks the run; it costs nothing meanwhile. A direct run has no clock and goes on at once."""
    stand_in = harness.get()
    if stand_in is not None:
        stand_in.sleep(duration.total_seconds())


def wait_for_event(
    name: str, payload: type[T], /, *, key: str | None = None, timeout: timedelta | None = None
) -> T:
    """Waits for the event `name` whose business key is `key`; raises WaitTimeout."""
    arrived: T = _require_harness("wait_for_event", name).wait(
        "event", name, payload, arguments={"key": key}, timeout_seconds=_seconds(timeout)
    )
    return arrived


def ask(
    title: str,
    answer: type[T],
    /,
    *,
    assignee: str,
    details: object = None,
    timeout: timedelta | None = None,
) -> T:
    """Waits for a person's answer; raises WaitTimeout."""
    answered: T = _require_harness("ask", title).wait(
        "ask",
        title,
        answer,
        arguments={"assignee": assignee, "details": details},
        timeout_seconds=_seconds(timeout),
    )
    return answered


def _require_harness(function: str, name: str) -> Harness:
    stand_in = harness.get()
    if stand_in is None:
        raise WorkflowError(
            "HF080",
            f"{function}({name!r}) was called outside an engine: nobody can answer",
            help="set holdfast.dsl.surface.harness to an object that answers, or start the "
            "workflow on an engine",
        )
    return stand_in


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


# Compensation.


class Undo(Protocol):
    """Registers a task that takes back what was just done."""

    def __call__(self, function: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Values are copied now: a later change of a list does not reach the undo step."""


@contextlib.contextmanager
def compensating() -> Iterator[Undo]:
    """On an error runs what was registered in reverse order, then raises the error again.

    An undo step that fails does not stop the others; the error is then CompensationFailed.
    """
    steps: list[tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]] = []

    def undo(function: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        steps.append((function, copy.deepcopy(args), copy.deepcopy(dict(kwargs))))

    try:
        yield undo
    except Exception as error:
        failed: CompensationFailed | None = None
        for function, args, kwargs in reversed(steps):
            try:
                function(*args, **kwargs)
            except Exception as undo_error:  # noqa: BLE001 - the other steps must still run
                name = getattr(function, "name", function.__name__)
                failed = CompensationFailed(f"undo of {name} failed: {undo_error}")
        if failed is not None:
            raise failed from error
        raise


# Durations and names of people.


def role(name: str) -> str:
    """The assignee that stands for everyone who has this role."""
    return f"role:{name}"


def seconds(n: float) -> timedelta:
    return timedelta(seconds=n)


def minutes(n: float) -> timedelta:
    return timedelta(minutes=n)


def hours(n: float) -> timedelta:
    return timedelta(hours=n)


def days(n: float) -> timedelta:
    return timedelta(days=n)
