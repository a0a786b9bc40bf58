"""Batches: one call of a task's function for the items of many executions.

    @task(batch=Batch(max=100, wait=seconds(5)))
    def send(mails: list[Mail]) -> list[str | TaskError]: ...

A workflow calls `send(mail)` with one item and gets one result. The engine collects the items of
all executions of a tenant: up to `max` of them, or those that arrive within `wait`.
docs/how-to/limits.md shows it.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass

_ITEMS_MAX: Final = 1_000
_WAIT_MAX: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch has at most `max` items. The first item waits for at most `wait` before the call."""

    max: int = 100
    wait: timedelta = timedelta(seconds=5)

    def __post_init__(self) -> None:
        if not 1 <= self.max <= _ITEMS_MAX:
            found, expected = f"max={self.max}", f"1 to {_ITEMS_MAX}"
            raise WorkflowError("HF069", f"Batch({found})", help=f"expected: {expected}")
        if not timedelta(0) <= self.wait <= _WAIT_MAX:
            raise WorkflowError("HF069", f"Batch(wait={self.wait})", help="expected: 0 to 15 min")


def of_one(function: Callable[..., Any], error: type[BaseException]) -> Callable[..., Any]:
    """Return the function for one item: a workflow calls it, a test runs it, and the compiler reads
    it.

    `error` is the class of errors that the list of results may contain. Raises WorkflowError HF069
    when the function does not take one list and return one.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    lists = [hints.get(name) for name in (*parameters, "return")]
    if len(lists) != 2 or any(typing.get_origin(one) is not list for one in lists):
        raise WorkflowError(
            "HF069",
            f"the batch task {function.__name__} does not take one list and return one",
            help=f"def {function.__name__}(items: list[In]) -> list[Out | TaskError]: ...",
        )
    ((item,), (result,)) = (typing.get_args(one) for one in lists)
    name = next(iter(parameters))
    result = _without_error(result, error)

    def one(*args: Any, **kwargs: Any) -> Any:
        (value,) = (*args, *kwargs.values())
        (found,) = function([value])
        if isinstance(found, error):
            raise found
        return found

    made: Any = functools.update_wrapper(one, function)
    # Remove this attribute, because `inspect` would otherwise read the annotations of the wrapped
    # function.
    del made.__wrapped__
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameter = inspect.Parameter(name, kind, annotation=item)
    made.__signature__ = inspect.Signature([parameter], return_annotation=result)
    made.__annotations__ = {name: item, "return": result}
    return one


def _without_error(result: Any, error: type[BaseException]) -> Any:
    if typing.get_origin(result) not in {typing.Union, types.UnionType}:
        return result
    rest = tuple(
        one
        for one in typing.get_args(result)
        if not (isinstance(one, type) and issubclass(one, error))
    )
    return typing.Union[rest]  # noqa: UP007  # of types that are known when it runs
