"""Makes one operation a method of both clients, with the signature of the operation.

    class Client:
        describe = blocking(executions.describe)

A type checker sees `describe(self, execution: str) -> Description`; in `AsyncClient`, with
`awaited`, the same with an Awaitable as its result. A handle passes its own execution as the first
argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from holdfast.remote.operations.requests import Operation

P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Protocol):
    """A client that performs operations in the calling thread."""

    def perform(self, operation: Operation[T], /) -> T: ...


class BlockingHandle(Blocking, Protocol):
    execution: str


class Awaiting(Protocol):
    """A client that performs operations without blocking an event loop."""

    def perform(self, operation: Operation[T], /) -> Awaitable[T]: ...


class AwaitingHandle(Awaiting, Protocol):
    execution: str


def blocking(make: Callable[P, Operation[T]]) -> Callable[Concatenate[Blocking, P], T]:
    def method(self: Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.perform(make(*args, **kwargs))

    _describe(method, make, omitted=0)
    return method


def blocking_of_one(
    make: Callable[Concatenate[str, P], Operation[T]],
) -> Callable[Concatenate[BlockingHandle, P], T]:
    def method(self: BlockingHandle, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.perform(make(self.execution, *args, **kwargs))

    _describe(method, make, omitted=1)
    return method


def awaited(make: Callable[P, Operation[T]]) -> Callable[Concatenate[Awaiting, P], Awaitable[T]]:
    def method(self: Awaiting, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        return self.perform(make(*args, **kwargs))

    _describe(method, make, omitted=0)
    return method


def awaited_of_one(
    make: Callable[Concatenate[str, P], Operation[T]],
) -> Callable[Concatenate[AwaitingHandle, P], Awaitable[T]]:
    def method(self: AwaitingHandle, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        return self.perform(make(self.execution, *args, **kwargs))

    _describe(method, make, omitted=1)
    return method


def _describe(method: Any, make: Callable[..., Any], *, omitted: int) -> None:
    """Give the method the operation's name, docstring and signature, which `help()` shows."""
    made = inspect.signature(make)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    answer = str(made.return_annotation).removeprefix("Operation[").removesuffix("]")
    method.__name__, method.__doc__ = make.__name__, make.__doc__
    method.__signature__ = made.replace(
        parameters=[own, *list(made.parameters.values())[omitted:]], return_annotation=answer
    )
