"""Tasks: `@task` and `@pure`, their settings, and the call of a task with JSON."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from holdfast.api.boundary import JsonValue, Misfit
from holdfast.api.declared import Declared
from holdfast.api.harness import harness
from holdfast.api.limits import Limit, require_limits
from holdfast.api.retries import Retry
from holdfast.api.runs_on import (
    Container,
    Lambda,
    RunsOn,
    Worker,
    require_plain,
    require_pools,
    stand_in,
)
from holdfast.api.sealing import NO_SEALS, Seals
from holdfast.api.task_errors import InvalidArguments, InvalidResult, TaskError
from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from holdfast.api.batches import Batch

P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Polling:
    """Whole seconds between two calls of a polled task: `every` at first, then each time `backoff`
    times longer, at most `most`.
    """

    every: timedelta
    backoff: float
    most: timedelta


def _run_to_its_end(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Return a function that runs an `async def` to its end. Each attempt has an event loop of its
    own.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        import asyncio  # noqa: PLC0415 - most functions have no such task

        return asyncio.run(function(*args, **kwargs))

    return run


class Task(Declared[P, R]):
    """A step that the engine runs, records and retries. Made by `@task`."""

    is_pure = False
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
        if isinstance(runs_on, Lambda):
            function = stand_in(function, runs_on)
        require_plain(function, runs_on, has_more=bool(limits) or batch is not None)
        if inspect.iscoroutinefunction(function):
            function = _run_to_its_end(function)
        called = function
        if batch is not None:
            from holdfast.api.batches import of_one  # noqa: PLC0415 - most tasks have no batch

            called = of_one(function, TaskError)
        super().__init__(called, name)
        self.batch = batch
        self.batch_function = None if batch is None else function
        self.runs_on, self.group = runs_on, group
        self.retry, self.timeout, self.heartbeat = retry, timeout, heartbeat
        self.limits = tuple(limits)
        self.cache, self.cache_version = cache, cache_version
        self.cache_key = None if cache_key is None else tuple(cache_key)
        self.idempotent, self.at_most_once = idempotent, at_most_once
        self.label, self.renamed = label, renamed
        self._require_settings(cache_key)

    def _require_settings(self, cache_key: Sequence[str] | None) -> None:
        """Raises WorkflowError for settings that do not fit the function or each other.

        Some checks are imported here, because most tasks do not need them. Each module that is
        imported makes the start of a Lambda function slower.
        """
        parameters = inspect.signature(self.function).parameters
        has_batch = self.batch is not None
        if self.cache is not None or cache_key is not None:
            from holdfast.api.caching import require_cache, require_cache_key  # noqa: PLC0415

            require_cache(self.name, self.cache, self.runs_on, has_batch=has_batch)
            require_cache_key(self.name, cache_key, parameters)
        if self.group is not None:
            from holdfast.api.groups import require_group  # noqa: PLC0415

            require_group(self.group, self.name, self.runs_on)
        is_elsewhere = self.runs_on is not None or self.group is not None or has_batch
        if self.at_most_once and (is_elsewhere or self.limits):
            raise _started_elsewhere(self.name)
        if has_batch and not all(limit.is_plain_rate for limit in self.limits):
            raise _limited_by_execution(self.name)
        require_limits(self.name, parameters, self.limits)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        stand_in = harness.get()
        if stand_in is None:
            found = self.function(*args, **kwargs)
            if found is None and self.polling is not None:
                raise _unmet(self.name)
            return found
        result: R = stand_in.run_task(self, self.bind(*args, **kwargs))
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
        if runs_on is not None:
            require_pools(self.name, self.runs_on)
        return self.changed(
            timeout=timeout, heartbeat=heartbeat, retry=retry, label=label, runs_on=runs_on
        )

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


def _started_elsewhere(name: str) -> WorkflowError:
    return WorkflowError(
        "HF438",
        f"the task {name} with at_most_once has runs_on=, group=, batch= or limits=",
        help="at_most_once=True is for tasks that the worker runs itself: elsewhere a lost "
        "answer or a postponed call may start the function twice. Without it, give the "
        "other system task_context().idempotency_key",
    )


def _limited_by_execution(name: str) -> WorkflowError:
    return WorkflowError(
        "HF069",
        f"a limit of the batch task {name} is not a plain rate",
        help="a call has items of many executions, and a tenant has one at a time: "
        "limit the calls with a rate, without concurrency, by(), fair and trip",
    )


class Pure(Task[P, R]):
    """A quick function without I/O. The engine runs it in the same step as its caller, without a
    retry.
    """

    is_pure = True


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
