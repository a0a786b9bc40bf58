"""Tasks and workflows, their errors and settings, and the context of a running task."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from datetime import timedelta
from types import MappingProxyType
from typing import (
    Any,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from holdfast.api.batches import Batch, of_one
from holdfast.api.boundary import Boundary, JsonValue, Misfit
from holdfast.api.harness import harness
from holdfast.api.keyed import Keyed, Unread, keyed_of
from holdfast.api.limits import Limit, require_limits
from holdfast.api.runs_on import (
    Container,
    Lambda,
    RunsOn,
    Worker,
    require_plain,
    require_pools,
    stand_in,
)
from holdfast.api.schedules import Schedule, require_startable
from holdfast.api.sealing import NO_SEALS, Seals
from holdfast.errors import RequestError, WorkflowError
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import PROGRESS_BYTES_MAX

#: For each name, either the path of a field of the input, or the type of a value that `note` sets.
SearchAttributes: TypeAlias = Mapping[str, str | type]
NO_SEARCH: Final[SearchAttributes] = MappingProxyType({})

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")


# The errors that a task passes to its workflow. In ASL the name of the class is the name of the
# error, and its `str()` is the Cause.


class TaskError(Exception):
    """The base of the errors that tasks raise and workflows catch by name."""


class WaitTimeout(TaskError):  # noqa: N818
    """An event, a person or a task did not answer in time (`States.Timeout`)."""


class HeartbeatMissed(Exception):  # noqa: N818
    """A task gave no heartbeat for longer than its `heartbeat` allows.

    A workflow gets `States.HeartbeatTimeout`, which `except WaitTimeout` catches.
    """


class BlockTimeout(WaitTimeout):
    """A `with timeout(…)` block did not end in time."""


class InvalidArguments(TaskError):  # noqa: N818
    """A task was called with arguments that do not fit its annotations."""


class InvalidResult(TaskError):  # noqa: N818
    """A task returned a value that does not fit its annotation."""


class GroupFailed(TaskError):  # noqa: N818
    """The Lambda function of a task's group crashed, could not be called, or gave no result."""


class RequestCancelled(TaskError):  # noqa: N818
    """The workflow that had received a request was stopped or cancelled before it replied."""


class BranchCancelled(TaskError):  # noqa: N818
    """A branch did not end, because `tolerate` or `at_least` decided the call before.

    With `return_exceptions=True` it is the result of that branch. It is never raised.
    """


class StepInterrupted(TaskError):  # noqa: N818
    """The worker of an attempt was lost, and the task has `at_most_once=True`, so no other worker
    runs the attempt again. The function may have run, in part or to its end.
    """


class CompensationFailed(TaskError):  # noqa: N818
    """An undo step of `compensating` failed; the remaining undo steps were still run."""


# The context of a running task.


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


# Tasks and workflows.


#: A setting of `Retry` whose default depends on `delays`.
_NOT_GIVEN: Final[Any] = None


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry rule: at most `max_attempts` attempts, the first included, on the errors in `on`
    (empty: on all), but never on the errors in `not_on`.

    `delays`: the delay before each retry, in place of `interval`, `backoff` and `max_delay`. There
    is one retry for each. With a larger `max_attempts`, further retries wait for the last delay.

    Defaults: max_attempts=3, interval=seconds(1), backoff=2.0, jitter=True. With `delays`:
    max_attempts=len(delays) + 1, jitter=False.
    """

    max_attempts: int = _NOT_GIVEN
    interval: timedelta = _NOT_GIVEN
    backoff: float = _NOT_GIVEN
    on: tuple[type[BaseException], ...] = ()
    max_delay: timedelta | None = None
    jitter: bool = _NOT_GIVEN
    not_on: tuple[type[BaseException], ...] = ()
    delays: Sequence[timedelta] | None = None

    def __post_init__(self) -> None:
        if self.delays is None:
            self._set_defaults(
                max_attempts=3, interval=timedelta(seconds=1), backoff=2.0, jitter=True
            )
        else:
            self._take_delays(tuple(self.delays))
        if self.max_attempts < 1:
            raise _bad_retry("max_attempts", self.max_attempts, "1 or more; 1 means no retry")
        if self.backoff < 1:
            raise _bad_retry("backoff", self.backoff, "1.0 or more")
        if Exception in self.not_on:
            raise _bad_retry("not_on", "every error", "the errors that are never retried")
        delays = [("interval", self.interval), ("max_delay", self.max_delay)]
        for setting, delay in (*delays, *(("delays", one) for one in self.delays or ())):
            if delay is not None and (delay.microseconds or delay < timedelta(seconds=1)):
                raise _bad_retry(setting, delay, "whole seconds, at least one")

    def _take_delays(self, delays: tuple[timedelta, ...]) -> None:
        if not delays:
            raise _bad_retry("delays", "empty", "a delay for each retry, as delays=[seconds(2)]")
        for setting in ("interval", "backoff", "max_delay"):
            # A copy by `dataclasses.replace` gives the values that were set here.
            given, own = (
                getattr(self, setting),
                {"interval": delays[0], "backoff": 1.0}.get(setting),
            )
            if given not in {None, own}:
                message = f"Retry(delays=...) has {setting}={given!r}, too"
                raise WorkflowError("HF061", message, help=f"give delays= without {setting}=")
        attempts = len(delays) + 1
        self._set_defaults(max_attempts=attempts, interval=delays[0], backoff=1.0, jitter=False)
        object.__setattr__(self, "delays", delays)
        if self.max_attempts < attempts:
            found = f"{self.max_attempts}, and {len(delays)} delays need {attempts}"
            raise _bad_retry("max_attempts", found, "delays= alone: each is the delay of a retry")

    def _set_defaults(self, **defaults: object) -> None:
        for setting, value in defaults.items():
            if getattr(self, setting) is _NOT_GIVEN:
                object.__setattr__(self, setting, value)


def _bad_retry(field: str, found: object, expected: str) -> WorkflowError:
    return WorkflowError("HF061", f"Retry({field}=...) is {found}", help=f"give {expected}")


@dataclass(frozen=True, slots=True)
class Polling:
    """Whole seconds between two calls of a polled task: `every` at first, then each time `backoff`
    times longer, at most `most`.
    """

    every: timedelta
    backoff: float
    most: timedelta


class _Declared(Generic[P, R]):
    """A named function, with the JSON form of its parameters and result, which is computed at the
    first use.
    """

    def __init__(self, function: Callable[P, R], name: str | None) -> None:
        functools.update_wrapper(cast(Any, self), function)
        self.function = function
        self.name = name if name is not None else function.__name__

    @functools.cached_property
    def boundary(self) -> Boundary:
        return Boundary(self.function)

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name}>"

    def __deepcopy__(self, _memo: object) -> Self:
        """Return the same object, as for a function: the arguments of `undo(start, ship, …)` are
        copied when they are registered.
        """
        return self


def _run_to_its_end(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Return a function that runs an `async def` to its end. Each attempt has an event loop of its
    own.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        import asyncio  # noqa: PLC0415 - most functions have no such task

        return asyncio.run(function(*args, **kwargs))

    return run


class Task(_Declared[P, R]):
    """A step that the engine runs, records and retries. Made by `@task`."""

    is_pure = False
    #: True for a task that calls a service. It has no function, so it accepts any arguments by
    #: name.
    is_service = False
    #: Set for a task that is called again until it returns a value; see `wait_for_condition`.
    polling: Polling | None = None

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: timedelta | None = None,
        heartbeat: timedelta | None = None,
        label: str | None = None,
        idempotent: bool = False,
        limits: Sequence[Limit] = (),
        batch: Batch | None = None,
        renamed: str | None = None,
        runs_on: RunsOn | None = None,
        group: str | None = None,
        cache: timedelta | None = None,
        cache_version: str = "",
        cache_key: Sequence[str] | None = None,
        at_most_once: bool = False,
    ) -> None:
        self.runs_on = runs_on
        if isinstance(runs_on, Lambda):
            function = stand_in(function, runs_on)
        require_plain(function, runs_on, has_more=bool(limits) or batch is not None)
        if inspect.iscoroutinefunction(function):
            function = _run_to_its_end(function)
        self.batch = batch
        self.batch_function = function if batch is not None else None
        if batch is not None:
            function = of_one(function, TaskError)
        super().__init__(function, name)
        self.cache, self.cache_version = cache, cache_version
        self.cache_key = None if cache_key is None else tuple(cache_key)
        if cache is not None or cache_key is not None:
            # Imported here because most tasks have no cache. Each module that is imported makes the
            # start of a Lambda function slower.
            from holdfast.api.caching import require_cache, require_cache_key  # noqa: PLC0415

            require_cache(self.name, cache, runs_on, has_batch=batch is not None)
            require_cache_key(self.name, cache_key, inspect.signature(function).parameters)
        self.group = group
        if group is not None:
            # Imported here because most tasks have no group. Each module that is imported makes the
            # start of a Lambda function slower.
            from holdfast.api.groups import require_group  # noqa: PLC0415

            require_group(group, self.name, runs_on)
        self.at_most_once = at_most_once
        is_elsewhere = runs_on is not None or group is not None or batch is not None
        if at_most_once and (is_elsewhere or limits):
            raise WorkflowError(
                "HF438",
                f"the task {self.name} with at_most_once has runs_on=, group=, batch= or limits=",
                help="at_most_once=True is for tasks that the worker runs itself: elsewhere a lost "
                "answer or a postponed call may start the function twice. Without it, give the "
                "other system task_context().idempotency_key",
            )
        self.limits = tuple(limits)
        if batch is not None and not all(limit.is_plain_rate for limit in self.limits):
            raise WorkflowError(
                "HF069",
                f"a limit of the batch task {self.name} is not a plain rate",
                help="a call has items of many executions, and a tenant has one at a time: "
                "limit the calls with a rate, without concurrency, by(), fair and trip",
            )
        require_limits(self.name, inspect.signature(function).parameters, self.limits)
        self.retry = retry
        self.timeout = timeout
        self.heartbeat = heartbeat
        self.label = label
        self.idempotent = idempotent
        self.renamed = renamed

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        stand_in = harness.get()
        if stand_in is None:
            found = self.function(*args, **kwargs)
            if found is None and self.polling is not None:
                raise _unmet(self.name)
            return found
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        result: R = stand_in.run_task(self, dict(bound.arguments))
        return result

    def options(
        self,
        *,
        timeout: timedelta | None = None,
        heartbeat: timedelta | None = None,
        retry: Retry | None = None,
        label: str | None = None,
        runs_on: Worker | None = None,
    ) -> Task[P, R]:
        """Return the same task with other settings for one call. `label` gives the name of its
        state, and `runs_on` another pool for a task that runs on a pool.
        """
        changed = copy.copy(self)
        if runs_on is not None:
            require_pools(self.name, self.runs_on)
            changed.runs_on = runs_on
        changed.timeout = timeout if timeout is not None else self.timeout
        changed.heartbeat = heartbeat if heartbeat is not None else self.heartbeat
        changed.retry = retry if retry is not None else self.retry
        changed.label = label if label is not None else self.label
        return changed

    def call_batch_json(
        self, inputs: Sequence[Mapping[str, JsonValue]], seals: Seals = NO_SEALS
    ) -> list[Any]:
        """Call the function of a batch with the items of `inputs`, in their order.

        Return, for each input, its result as JSON or its own exception. Raises VaultFault, and any
        exception of the function.
        """
        assert self.batch_function is not None
        found: list[Any] = []
        for arguments in inputs:
            try:
                (item,) = self.boundary.parse_arguments(arguments, seals).values()
            except Misfit as misfit:
                item = InvalidArguments(f"{self.name}({misfit})")
            found.append(item)
        items = [item for item in found if not isinstance(item, InvalidArguments)]
        # The annotations of the items were checked just before, which `P` cannot express.
        function: Callable[..., Any] = self.batch_function
        results = list(function(items)) if items else []
        if len(results) != len(items):
            raise InvalidResult(f"{self.name} got {len(items)} items and returned {len(results)}")
        own = iter(results)
        return [
            item if isinstance(item, InvalidArguments) else self._batch_result(next(own), seals)
            for item in found
        ]

    def _batch_result(self, result: Any, seals: Seals) -> Any:
        if isinstance(result, TaskError):
            return result
        try:
            return self.boundary.dump_result(result, seals)
        except Misfit as misfit:
            return InvalidResult(f"{self.name}: {misfit}")

    def call_json(self, arguments: Mapping[str, JsonValue], seals: Seals = NO_SEALS) -> JsonValue:
        """Call the function with JSON and return its result as JSON.

        Raises InvalidArguments, InvalidResult, VaultFault, and the function's own errors.
        """
        try:
            values = self.boundary.parse_arguments(arguments, seals)
        except Misfit as misfit:
            raise InvalidArguments(f"{self.name}({misfit})") from None
        # The arguments were checked just before, by their names, which `P` cannot express.
        function: Callable[..., R] = self.function
        result = function(**values)
        try:
            return self.boundary.dump_result(result, seals)
        except Misfit as misfit:
            raise InvalidResult(f"{self.name}: {misfit}") from None


def _unmet(name: str) -> WorkflowError:
    return WorkflowError(
        "HF080",
        f"{name} returned None, and outside an engine no time passes until the next call",
        help="holdfast.testing has a clock: World(…).run(workflow, …)",
    )


class Pure(Task[P, R]):
    """A quick function without I/O. The engine runs it in the same step as its caller, without a
    retry.
    """

    is_pure = True


class Workflow(_Declared[P, R]):
    """A function that the compiler turns into a state machine. Made by `@workflow`."""

    limits: tuple[Limit, ...] = ()
    # These are attributes of the class, because a graph is a workflow, too, and does not call this
    # constructor.
    schedule: Schedule | None = None
    # Hints for the migration of executions of the version before this one (`holdfast migrate`).
    renamed: Mapping[str, str] = MappingProxyType({})
    assumed_done: tuple[str, ...] = ()
    #: The functions that compute variables for executions of older versions; see `migrates`.
    conversions: Mapping[str, Callable[..., Any]] = MappingProxyType({})
    search: SearchAttributes = NO_SEARCH
    keyed: Keyed | None = None
    # The settings of a call in another workflow; see `options`. `timeout` is that of an execution.
    call_timeout: timedelta | None = None
    retry: Retry | None = None
    label: str | None = None

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        timeout: timedelta | None = None,
        limits: Sequence[Limit] = (),
        schedule: Schedule | None = None,
        renamed: Mapping[str, str] = MappingProxyType({}),
        assumed_done: Sequence[str] = (),
        search: SearchAttributes = NO_SEARCH,
        key: str | None = None,
        starts_on: str | None = None,
        unread: Unread = "next",
    ) -> None:
        if isinstance(function, type):
            raise WorkflowError(
                "HF007",
                f"a workflow is a function, and {function.__name__} is a class",
                help="@workflow def run(order: Order) -> str: …, with its state in local variables",
            )
        super().__init__(function, name)
        self.renamed = renamed
        self.assumed_done = tuple(assumed_done)
        self.timeout = timeout
        if search:
            # Imported here because most workflows have no search attributes. Each module that is
            # imported makes the start of a Lambda function slower.
            from holdfast.api.searching import require_search  # noqa: PLC0415

            self.search = require_search(self.name, search)
        self.limits = tuple(limits)
        self.schedule = schedule
        parameters = inspect.signature(function).parameters
        self.keyed = keyed_of(self.name, parameters, key, starts_on, unread)
        require_limits(self.name, parameters, self.limits)
        if schedule is not None:
            require_startable(self.name, parameters, schedule)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Start a child execution, in the body of another workflow. An error of the child is raised
        here with its name.
        """
        stand_in = harness.get()
        if stand_in is None:
            return self.function(*args, **kwargs)
        result: R = stand_in.run_workflow(self, self.bind(*args, **kwargs))
        return result

    def options(
        self,
        *,
        timeout: timedelta | None = None,
        retry: Retry | None = None,
        label: str | None = None,
    ) -> Workflow[P, R]:
        """Return the same workflow with settings for one call in another workflow.

        Each attempt of `retry` is a child execution of its own. A child that has not ended after
        `timeout` is stopped, and the call raises WaitTimeout. `label` gives the name of the state.
        """
        changed = copy.copy(self)
        changed.call_timeout = timeout if timeout is not None else self.call_timeout
        changed.retry = retry if retry is not None else self.retry
        changed.label = label if label is not None else self.label
        return changed

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        """Return the arguments of a call by name, with the defaults of those left out."""
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def default_arguments(self) -> dict[str, JsonValue]:
        """Return the defaults of omitted parameters, as JSON. Raises the errors of pydantic."""
        return self.boundary.default_arguments()

    def normalise_input(self, value: JsonValue, seals: Seals = NO_SEALS) -> JsonValue:
        """Return the input with every parameter and field present.

        Raises RequestError HF210, VaultFault.
        """
        parameters = ", ".join(inspect.signature(self.function).parameters)
        if not isinstance(value, dict):
            raise RequestError(
                "HF210",
                f"the input of {self.name} is {type(value).__name__}, expected a JSON object",
                help=f"send an object of its parameters: {parameters}",
            )
        try:
            normal: dict[str, JsonValue] = self.boundary.normalise_arguments(value, seals)
        except Misfit as misfit:
            raise RequestError(
                "HF210",
                f"the input of {self.name} does not fit: {misfit}",
                help=f"its parameters are: {parameters}",
            ) from None
        return normal


class MakesTask(Protocol):
    """The decorator `@task(…)`. From an `async def` it makes a task of the final result."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> Task[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    heartbeat: timedelta | None = None,
    idempotent: bool = False,
    limits: Sequence[Limit] = (),
    renamed: str | None = None,
    group: str | None = None,
    cache: timedelta | None = None,
    cache_version: str = "",
    cache_key: Sequence[str] | None = None,
    at_most_once: bool = False,
) -> MakesTask: ...
@overload
def task(
    *,
    runs_on: Lambda,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    idempotent: bool = False,
    limits: Sequence[Limit] = (),
    renamed: str | None = None,
    cache: timedelta | None = None,
    cache_version: str = "",
    cache_key: Sequence[str] | None = None,
) -> MakesTask: ...
@overload
def task(
    *,
    runs_on: Worker | Container,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    heartbeat: timedelta | None = None,
    idempotent: bool = False,
    renamed: str | None = None,
) -> MakesTask: ...
@overload
def task(
    *,
    batch: Batch,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    idempotent: bool = False,
    renamed: str | None = None,
    group: str | None = None,
) -> Callable[[Callable[[list[Item]], list[R | TaskError]]], Task[[Item], R]]: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: timedelta | None = None,
    heartbeat: timedelta | None = None,
    idempotent: bool = False,
    limits: Sequence[Limit] = (),
    batch: Batch | None = None,
    renamed: str | None = None,
    runs_on: RunsOn | None = None,
    group: str | None = None,
    cache: timedelta | None = None,
    cache_version: str = "",
    cache_key: Sequence[str] | None = None,
    at_most_once: bool = False,
) -> Any:
    """Declare a durable step. It may do I/O. It is retried by `retry`; without one it is not
    retried.

    `limits`: all of them must let an attempt begin. `batch`: the function gets a list of the items
    of many executions and returns a list of their results. `idempotent` declares that running it
    twice is the same as running it once; `holdfast check` then has nothing to say about its
    retries. `renamed`: the name that the task had before, for `holdfast migrate`.
    `runs_on`: an existing Lambda function, whose declaration has types and no code; a pool of
    workers, or containers.
    `group`: attempts run in the group's own function, with its own role (docs/how-to/groups.md).
    `cache`: for so long, a call with equal arguments takes the result of an earlier one, in any
    execution of the tenant. With another `cache_version` no earlier result counts. `cache_key`: the
    names of the parameters that have to be equal; None means all.
    `at_most_once`: each attempt starts the function at most once. When its worker is lost, the
    attempt fails with StepInterrupted, and is retried only if `Retry(on=…)` names that.
    """
    make = functools.partial(
        Task,
        name=name,
        retry=retry,
        timeout=timeout,
        heartbeat=heartbeat,
        idempotent=idempotent,
        limits=limits,
        batch=batch,
        renamed=renamed,
        runs_on=runs_on,
        group=group,
        cache=cache,
        cache_version=cache_version,
        cache_key=cache_key,
        at_most_once=at_most_once,
    )
    return make if function is None else make(function)


def pure(function: Callable[P, R], /) -> Pure[P, R]:
    """Mark a quick function without I/O, for expressions that the workflow language lacks."""
    return Pure(function)


@overload
def workflow(function: Callable[P, R], /) -> Workflow[P, R]: ...
@overload
def workflow(
    *,
    name: str | None = None,
    timeout: timedelta | None = None,
    limits: Sequence[Limit] = (),
    schedule: Schedule | None = None,
    renamed: Mapping[str, str] = MappingProxyType({}),
    assumed_done: Sequence[str] = (),
    search: SearchAttributes = NO_SEARCH,
    key: str | None = None,
    starts_on: str | None = None,
    unread: Unread = "next",
) -> Callable[[Callable[P, R]], Workflow[P, R]]: ...
def workflow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    timeout: timedelta | None = None,
    limits: Sequence[Limit] = (),
    schedule: Schedule | None = None,
    renamed: Mapping[str, str] = MappingProxyType({}),
    assumed_done: Sequence[str] = (),
    search: SearchAttributes = NO_SEARCH,
    key: str | None = None,
    starts_on: str | None = None,
    unread: Unread = "next",
) -> Any:
    """Declare a durable workflow: a module-level function in the language of
    docs/reference/language.md.

    * `limits`: how many executions may run at once, or begin in a time; others wait.
    * `schedule`: starts executions without a caller.
    * `renamed`: for `holdfast migrate`, gives variables and steps of the version before this one
      their present names. `assumed_done`: new steps that executions beyond them need not run.
    * `search`: the attributes by which executions are found: `{"customer": "order.customer_id",
      "stage": str}`, a field of the input, or the type of a value that `note` sets.
    * `key`: a parameter; at most one execution runs for each of its values.
    * `starts_on`: the event that starts an execution when none runs for its key.
    * `unread`: events that an ended execution has not used go to the next one, or with "drop" to
      none.
    """
    make = functools.partial(
        Workflow,
        name=name,
        timeout=timeout,
        limits=limits,
        schedule=schedule,
        renamed=renamed,
        assumed_done=assumed_done,
        search=search,
        key=key,
        starts_on=starts_on,
        unread=unread,
    )
    return make if function is None else make(function)
