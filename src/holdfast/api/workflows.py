"""Workflows: `@workflow` and its settings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar, overload

from holdfast.api.boundary import JsonValue, Misfit
from holdfast.api.declared import Declared
from holdfast.api.harness import harness
from holdfast.api.keyed import Keyed, Unread, keyed_of
from holdfast.api.limits import Limit, require_limits
from holdfast.api.retries import Retry
from holdfast.api.sealing import NO_SEALS, Seals
from holdfast.errors import RequestError, WorkflowError

if TYPE_CHECKING:
    from holdfast.api.schedules import Schedule

P = ParamSpec("P")
R = TypeVar("R")

#: For each name, either the path of a field of the input, or the type of a value that `note` sets.
SearchAttributes: TypeAlias = Mapping[str, str | type]
NO_SEARCH: Final[SearchAttributes] = MappingProxyType({})


class Workflow(Declared[P, R]):
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
            # This module and that of schedules are imported here, because most workflows need
            # neither. Each module that is imported makes the start of a Lambda function slower.
            from holdfast.api.searching import require_search  # noqa: PLC0415

            self.search = require_search(self.name, search)
        self.limits = tuple(limits)
        self.schedule = schedule
        parameters = inspect.signature(function).parameters
        self.keyed = keyed_of(self.name, parameters, key, starts_on, unread)
        require_limits(self.name, parameters, self.limits)
        if schedule is not None:
            from holdfast.api.schedules import require_startable  # noqa: PLC0415

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
        return self.changed(call_timeout=timeout, retry=retry, label=label)

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
