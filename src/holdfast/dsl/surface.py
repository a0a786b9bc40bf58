"""What a workflow is written with. Outside the engine all of it is plain Python.

A workflow function is never run by the engine: the compiler reads its source. It does run when a
test calls it directly, and then tasks are called, branches run in order, and `compensating` undoes
in reverse order. Time and other people are not there, so a `harness` may stand in for them.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, cast, overload

from holdfast.dsl.boundary import Boundary, Json, Misfit
from holdfast.errors import RequestError, WorkflowError

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


# Errors that cross the task boundary: the class name is the ASL error name, str() is the Cause.


class TaskError(Exception):
    """Base of the errors that tasks raise and workflows catch by name."""


class WaitTimeout(TaskError):  # noqa: N818
    """An event, a human task or a task was not answered in time (`States.Timeout`)."""


class InvalidArguments(TaskError):  # noqa: N818
    """A task was called with arguments that do not fit its annotations."""


class InvalidResult(TaskError):  # noqa: N818
    """A task returned a value that does not fit its annotation."""


class CompensationFailed(TaskError):  # noqa: N818
    """An undo step of `compensating` failed; the remaining undo steps were still run."""


# What surrounds a running task, and what stands in for the engine in a direct run.


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Who is running: `attempt` counts from 1; `idempotency_key` is the same in every attempt."""

    execution: str
    name: str | None
    workflow: str
    task: str
    attempt: int
    idempotency_key: str


class Harness(Protocol):
    """Stands in for tasks, time and other people while a workflow function runs directly."""

    def run_task(self, task: Task[..., Any], arguments: dict[str, Any], /) -> Any:
        """The value that `task` returns for these Python values, by parameter name."""

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

    def sleep(self, seconds: float, /) -> None: ...


harness: ContextVar[Harness | None] = ContextVar("harness", default=None)

_LOCAL = TaskContext(
    execution="local", name=None, workflow="", task="", attempt=1, idempotency_key="local"
)
_running: ContextVar[TaskContext] = ContextVar("running_task", default=_LOCAL)


def task_context() -> TaskContext:
    """The attempt that is running; outside an engine one whose execution is `local`."""
    return _running.get()


@contextlib.contextmanager
def running_task(context: TaskContext) -> Iterator[None]:
    token = _running.set(context)
    try:
        yield
    finally:
        _running.reset(token)


# Tasks and workflows.


@dataclass(frozen=True, slots=True)
class Retry:
    """`max_attempts` tries in all, the first included, on the errors `on` (none named: on all)."""

    max_attempts: int = 3
    interval: timedelta = timedelta(seconds=1)
    backoff: float = 2.0
    on: tuple[type[BaseException], ...] = ()
    max_delay: timedelta | None = None
    jitter: bool = True

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise _bad_retry("max_attempts", self.max_attempts, "1 or more; 1 means no retry")
        if self.backoff < 1:
            raise _bad_retry("backoff", self.backoff, "1.0 or more")
        for field, delay in (("interval", self.interval), ("max_delay", self.max_delay)):
            if delay is not None and (delay.microseconds or delay < timedelta(seconds=1)):
                raise _bad_retry(field, delay, "whole seconds, at least one")


def _bad_retry(field: str, found: object, expected: str) -> WorkflowError:
    return WorkflowError("HF061", f"Retry({field}=...) is {found}", help=f"give {expected}")


class _Declared(Generic[P, R]):
    """A named function and, on first use, the JSON form of its parameters and result."""

    def __init__(self, function: Callable[P, R], name: str | None) -> None:
        functools.update_wrapper(cast(Any, self), function)
        self.function = function
        self.name = name if name is not None else function.__name__

    @functools.cached_property
    def _boundary(self) -> Boundary:
        return Boundary(self.function)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"


class Task(_Declared[P, R]):
    """A step that the engine runs, records and retries. Made by `@task`."""

    is_pure = False

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
        heartbeat: timedelta | None = None,
        label: str | None = None,
    ) -> None:
        super().__init__(function, name)
        self.retry = retry
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.label = label

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        stand_in = harness.get()
        if stand_in is None:
            return self.function(*args, **kwargs)
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        result: R = stand_in.run_task(self, dict(bound.arguments))
        return result

    def options(
        self,
        *,
        timeout: timedelta | None = None,
        retry: Retry | None = None,
        label: str | None = None,
    ) -> Task[P, R]:
        """The same task with other settings for one call; `label` names its state."""
        changed = copy.copy(self)
        changed.timeout = timeout if timeout is not None else self.timeout
        changed.retry = retry if retry is not None else self.retry
        changed.label = label if label is not None else self.label
        return changed

    def call_json(self, arguments: Mapping[str, Json]) -> Json:
        """Calls the function with JSON and gives its result as JSON.

        Raises InvalidArguments, InvalidResult, or whatever the function raises.
        """
        try:
            values = self._boundary.parse_arguments(arguments)
        except Misfit as misfit:
            raise InvalidArguments(f"{self.name}({misfit})") from None
        # The annotations were just checked by name; P cannot say so.
        function: Callable[..., R] = self.function
        result = function(**values)
        try:
            return self._boundary.dump_result(result)
        except Misfit as misfit:
            raise InvalidResult(f"{self.name}: {misfit}") from None


class Pure(Task[P, R]):
    """A quick function without I/O that the engine runs inline, without a retry."""

    is_pure = True


class Workflow(_Declared[P, R]):
    """A function that the compiler turns into a state machine. Made by `@workflow`."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        version: str | None = None,
        timeout: timedelta | None = None,
    ) -> None:
        super().__init__(function, name)
        self.version = version
        self.timeout = timeout

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def normalise_input(self, value: Json) -> Json:
        """The input with every parameter and field present; raises RequestError HF210."""
        parameters = ", ".join(inspect.signature(self.function).parameters)
        if not isinstance(value, dict):
            raise RequestError(
                "HF210",
                f"the input of {self.name} is {type(value).__name__}, expected a JSON object",
                help=f"send an object of its parameters: {parameters}",
            )
        try:
            normal: dict[str, Json] = self._boundary.normalise_arguments(value)
        except Misfit as misfit:
            raise RequestError(
                "HF210",
                f"the input of {self.name} does not fit: {misfit}",
                help=f"its parameters are: {parameters}",
            ) from None
        return normal


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    heartbeat: timedelta | None = None,
) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    heartbeat: timedelta | None = None,
) -> Any:
    """A durable step: may do I/O, is retried by `retry` (none named: not at all)."""
    make = functools.partial(Task, name=name, retry=retry, timeout=timeout, heartbeat=heartbeat)
    return make if function is None else make(function)


def pure(function: Callable[P, R], /) -> Pure[P, R]:
    """A quick function without I/O, for what a workflow cannot say itself."""
    return Pure(function)


@overload
def workflow(function: Callable[P, R], /) -> Workflow[P, R]: ...
@overload
def workflow(
    *, name: str | None = None, version: str | None = None, timeout: timedelta | None = None
) -> Callable[[Callable[P, R]], Workflow[P, R]]: ...
def workflow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: str | None = None,
    timeout: timedelta | None = None,
) -> Any:
    """A durable workflow: a module-level function in the language of docs/language.md."""
    make = functools.partial(Workflow, name=name, version=version, timeout=timeout)
    return make if function is None else make(function)


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
