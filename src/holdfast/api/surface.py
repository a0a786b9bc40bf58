"""The names for writing workflows. Outside of the engine they are plain Python.

The engine never runs a workflow function: the compiler reads its source. The function does run when
a test calls it directly. Then tasks are called, branches run in order, and `compensating` undoes in
reverse order. Time and other people are missing in such a run, so a `harness` may replace them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from types import UnionType
from typing import Any, Final, NoReturn, ParamSpec, TypeVar, cast, overload

from holdfast.api.branches import each, first, parallel
from holdfast.api.harness import Cancelled, ContinueAsNew, Harness, harness, time_out_seconds
from holdfast.api.requests import Received
from holdfast.api.retries import Retry
from holdfast.api.scopes import Undo, compensating, shielded, timeout
from holdfast.api.task_context import (
    LOCAL_EXECUTION,
    TaskContext,
    heartbeat,
    running_task,
    task_context,
)
from holdfast.api.task_errors import (
    BlockTimeout,
    BranchCancelled,
    CompensationFailed,
    GroupFailed,
    HeartbeatMissed,
    InvalidArguments,
    InvalidResult,
    RequestCancelled,
    StepInterrupted,
    TaskError,
    WaitTimeout,
)
from holdfast.api.tasks import Pure, Task, pure, task
from holdfast.api.workflows import Workflow, workflow
from holdfast.errors import WorkflowError

__all__ = [
    "BlockTimeout",
    "BranchCancelled",
    "Cancelled",
    "CompensationFailed",
    "GroupFailed",
    "Harness",
    "HeartbeatMissed",
    "InvalidArguments",
    "InvalidResult",
    "Pure",
    "RequestCancelled",
    "Retry",
    "StepInterrupted",
    "Task",
    "TaskContext",
    "TaskError",
    "Undo",
    "WaitTimeout",
    "Workflow",
    "again",
    "ask",
    "compensating",
    "days",
    "each",
    "execution_id",
    "execution_name",
    "execution_started",
    "first",
    "harness",
    "heartbeat",
    "hours",
    "migrates",
    "minutes",
    "note",
    "parallel",
    "publish",
    "pure",
    "receive",
    "request",
    "role",
    "running_task",
    "seconds",
    "send",
    "shielded",
    "sleep",
    "sleep_until",
    "start",
    "stop",
    "task",
    "task_context",
    "timeout",
    "wait_for_condition",
    "wait_for_event",
    "workflow",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")


# Durable calls.


def sleep(duration: timedelta, /) -> None:
    """Pause the workflow for the duration, which costs nothing. Zero or less does not wait.

    A direct run without a harness has no clock and continues at once.
    """
    stand_in = _find_harness("sleep")
    if stand_in is not None:
        stand_in.sleep(duration.total_seconds())


def sleep_until(moment: datetime, /) -> None:
    """Pause the workflow until `moment`; a moment in the past does not wait.

    Raises ValueError when `moment` has no time zone. In the engine that is an error of an
    expression, which undo steps and `except Exception` handle. With pydantic's `AwareDatetime` such
    a value is refused before the run begins.
    """
    if moment.utcoffset() is None:
        raise ValueError("sleep_until() takes a datetime with a time zone")
    stand_in = _find_harness("sleep_until")
    if stand_in is not None:
        stand_in.sleep_until(moment)


@overload
def wait_for_event(
    name: str,
    payload: None,
    /,
    *,
    key: str | None = None,
    timeout: timedelta | None = None,
    kept: bool = True,
) -> None: ...
@overload
def wait_for_event(
    name: str,
    payload: type[T],
    /,
    *,
    key: str | None = None,
    timeout: timedelta | None = None,
    kept: bool = True,
) -> T: ...
@overload
def wait_for_event(
    name: str,
    payload: UnionType,
    /,
    *,
    key: str | None = None,
    timeout: timedelta | None = None,
    kept: bool = True,
) -> Any: ...
def wait_for_event(
    name: str,
    payload: Any,
    /,
    *,
    key: str | None = None,
    timeout: timedelta | None = None,
    kept: bool = True,
) -> Any:
    """Wait for the event `name` with the business key `key`. Raises WaitTimeout.

    `payload` may be a union, `AddItem | Checkout`: annotate the result with it, because mypy does
    not infer it. It is None for an event without data. With `kept=False` the wait uses no event
    that was stored before the execution started. Raises ValueError for a time-out below a second.
    """
    arrived = _require_harness("wait_for_event", name).wait(
        *("event", name, payload),
        arguments={"key": key},
        timeout_seconds=_seconds(timeout),
        kept=kept,
    )
    return arrived


def migrates(workflow: Workflow[..., Any], /) -> Callable[[F], F]:
    """Compute a variable that executions of an older version lack, when they move to this one.

        @migrates(loan)
        def months(history: list[int]) -> int:
            return len(history)

    The function has the name of the variable. Its parameters have the names of variables of the
    older version. It is pure: no task, no I/O. Stands below the workflow, in its module.
    """

    def register(function: F) -> F:
        workflow.conversions = {**workflow.conversions, function.__name__: function}
        return function

    return register


def wait_for_condition(
    task: Task[P, T | None],
    /,
    *,
    every: timedelta,
    backoff: float = 1.0,
    most: timedelta | None = None,
) -> Task[P, T]:
    """Return `task` in the form that is called until it returns something other than None.

        shipment = wait_for_condition(check_carrier, every=minutes(5), backoff=2.0)(order_id)

    The first call is at once, the next after `every`, and each further one `backoff` times later,
    at most `most` apart. `with timeout(days(3)):` around it bounds the whole wait. Raises
    WorkflowError HF370.
    """
    # Imported here because only the compiler and tests call this function. Each module that is
    # imported makes the start of a Lambda function slower.
    from holdfast.api.polling import polled  # noqa: PLC0415

    waiting: Any = polled(task, every, backoff, most)
    return cast("Task[P, T]", waiting)


@overload
def ask(
    title: str,
    answer: type[T],
    /,
    *,
    assignee: str,
    details: object = None,
    timeout: timedelta | None = None,
    remind: timedelta | tuple[timedelta, ...] | None = None,
) -> T: ...
@overload
def ask(
    title: str,
    answer: UnionType,
    /,
    *,
    assignee: str,
    details: object = None,
    timeout: timedelta | None = None,
    remind: timedelta | tuple[timedelta, ...] | None = None,
) -> Any: ...
def ask(
    title: str,
    answer: Any,
    /,
    *,
    assignee: str,
    details: object = None,
    timeout: timedelta | None = None,
    remind: timedelta | tuple[timedelta, ...] | None = None,
) -> Any:
    """Wait for a person's answer. Raises WaitTimeout, and ValueError for a time-out below a second.

    `answer` may be a union, as the payload of `wait_for_event`. `remind`: how long before the
    deadline an open question is announced once more; a tuple for several times.
    """
    times = (remind,) if isinstance(remind, timedelta) else remind
    answered = _require_harness("ask", title).wait(
        "ask",
        title,
        answer,
        arguments={
            "assignee": assignee,
            "details": details,
            "remind": times and [_seconds(one) for one in times],
        },
        timeout_seconds=_seconds(timeout),
    )
    return answered


@overload
def receive(
    name: str, payload: None, /, *, key: str, timeout: timedelta | None = None
) -> Received[None]: ...
@overload
def receive(
    name: str, payload: type[T], /, *, key: str, timeout: timedelta | None = None
) -> Received[T]: ...
@overload
def receive(
    name: str, payload: UnionType, /, *, key: str, timeout: timedelta | None = None
) -> Received[Any]: ...
def receive(
    name: str, payload: Any, /, *, key: str, timeout: timedelta | None = None
) -> Received[Any]:
    """Wait for a request, and reply to it: `with receive("total", Currency, key=cart_id) as
    request:`.

    Each way through the block must end with `request.reply(…)` or an error, which rejects the
    request. The workflow then continues after the block. Raises WaitTimeout.
    """
    return Received(_require_harness("receive", name), name, payload, key, timeout)


@overload
def send(name: str, data: object, /, *, key: str) -> None: ...
@overload
def send(name: str, data: object, /, *, key: str, delay: timedelta) -> str: ...
@overload
def send(name: str, data: object, /, *, key: str, at: datetime) -> str: ...
def send(
    name: str,
    data: object,
    /,
    *,
    key: str,
    delay: timedelta | None = None,
    at: datetime | None = None,
) -> str | None:
    """Send the event `name` to an execution that waits for it with this business key, now or later.

    It is sent once, even if a worker crashes. Data that does not fit the type that workflows
    declare for the event raises InvalidArguments.

    With `delay` or `at` it is sent later. Then the result is the id of the execution that waits
    until then: `stop(id)` cancels it.
    """
    return _require_harness("send", name).send(name, data, key=key, later=_later(delay, at))


@overload
def request(
    name: str, data: object, /, *, key: str, returns: None, timeout: timedelta | None = None
) -> None: ...
@overload
def request(
    name: str, data: object, /, *, key: str, returns: type[T], timeout: timedelta | None = None
) -> T: ...
@overload
def request(
    name: str, data: object, /, *, key: str, returns: UnionType, timeout: timedelta | None = None
) -> Any: ...
def request(
    name: str, data: object, /, *, key: str, returns: Any, timeout: timedelta | None = None
) -> Any:
    """Send the request `name` to the workflow that receives it with this business key, and return
    its reply, a `returns`.

    It is handled once, even if a worker crashes. An error with which the other workflow rejects it
    is raised here, by its own name. Raises WaitTimeout. A reply that does not fit `returns` raises
    InvalidResult, and data that no `receive` takes InvalidArguments.
    """
    return _require_harness("request", name).request(
        name, data, key=key, returns=returns, timeout_seconds=_seconds(timeout)
    )


@overload
def start(workflow: Workflow[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> str: ...
@overload
def start(workflow: Workflow[..., Any], /, *args: Any, delay: timedelta, **kwargs: Any) -> str: ...
@overload
def start(workflow: Workflow[..., Any], /, *args: Any, at: datetime, **kwargs: Any) -> str: ...
def start(workflow: Workflow[..., Any], /, *args: Any, **kwargs: Any) -> str:
    """Start an execution of a workflow without waiting for it, and return its id.

    It is started once, even if a worker crashes. It continues when the calling execution ends or is
    stopped.

    With `delay` or `at` it begins later, under the same id: `stop(id)` cancels it. If the workflow
    has a parameter of that name, the argument is the workflow's.
    """
    stand_in = _require_harness("start", workflow.name)
    words = [word for word in LATER if word in kwargs and not workflow.boundary.takes(word)]
    when = {word: kwargs.pop(word) for word in words}
    return stand_in.start(workflow, workflow.bind(*args, **kwargs), later=_later(**when))


#: The arguments of `send` and `start` for a later time.
LATER: Final = ("delay", "at")


def _later(
    delay: timedelta | None = None, at: datetime | None = None
) -> timedelta | datetime | None:
    if delay is not None and at is not None:
        raise TypeError("give one of delay= and at=")
    return at if delay is None else delay


def stop(execution: str, /) -> None:
    """Stop an execution that `start` has begun: it undoes its work and ends as ABORTED.

    If it has already ended, nothing happens. This does not wait for the end. An id of no execution
    raises InvalidArguments.
    """
    _require_harness("stop", execution).stop(execution)


def execution_id() -> str:
    """Return the id of the execution that runs this workflow, as `holdfast list` shows it.

    In a branch it is the id of the whole execution, in a child workflow the child's own.
    """
    return _require_harness("execution_id").own_execution().id


def execution_name() -> str:
    """Return the name that this execution was given at its start; its id when it was given none."""
    return _require_harness("execution_name").own_execution().name


def execution_started() -> datetime:
    """Return when this execution was started, in UTC. It is the same after `again` and a retry."""
    return _require_harness("execution_started").own_execution().started


def again(*args: Any, **kwargs: Any) -> NoReturn:
    """Continue as new: `return again(items)` begins the workflow again with these arguments.

    It stays the same execution: its id and name, the events that it has used, its published values
    and its time-out are kept. Variables are dropped, and the newest definition runs. In a direct
    call of the function `again` raises ContinueAsNew.
    """
    raise ContinueAsNew(args, kwargs)


def publish(name: str, value: object, /) -> None:
    """Let others read the value, while the execution runs and after it: `holdfast show`, the API
    and the client show the newest value of each name.

    Reading does not wake the execution. In a direct run without a harness this does nothing.
    """
    stand_in = _find_harness("publish")
    if stand_in is not None:
        stand_in.publish(name, value)


def note(**attributes: object) -> None:
    """Change search attributes: `note(stage="packed")`. None removes one.

    The workflow declares them in `@workflow(search={…})`. In a direct run without a harness this
    does nothing.
    """
    stand_in = _find_harness("note")
    if stand_in is not None:
        stand_in.note(attributes)


def _find_harness(function: str) -> Harness | None:
    """Return the harness; None in a direct run without one. Raises WorkflowError HF080 in a task:
    without the error the call would do nothing there, and no test would show it.
    """
    stand_in = harness.get()
    context = task_context()
    if stand_in is None and context.execution != LOCAL_EXECUTION:
        # Imported here because only a mistake needs it. Each module that is imported makes the
        # start of a Lambda function slower.
        from holdfast.api.workflow_only import help_for, message_of  # noqa: PLC0415

        raise WorkflowError("HF080", message_of(function, context.task), help=help_for(function))
    return stand_in


def _require_harness(function: str, *names: str) -> Harness:
    stand_in = _find_harness(function)
    if stand_in is None:
        call = f"{function}({', '.join(map(repr, names))})"
        raise WorkflowError(
            "HF080",
            f"{call} was called outside an engine: there is no answer",
            help="holdfast.testing: World({…}).run(workflow, …); or start it on an engine",
        )
    return stand_in


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else time_out_seconds(duration)


# Durations and names of people.


def role(name: str) -> str:
    """Return the assignee for all people with this role."""
    return f"role:{name}"


def seconds(n: float) -> timedelta:
    return timedelta(seconds=n)


def minutes(n: float) -> timedelta:
    return timedelta(minutes=n)


def hours(n: float) -> timedelta:
    return timedelta(hours=n)


def days(n: float) -> timedelta:
    return timedelta(days=n)
