"""Concurrent branches: all of them, the first, some of them, or one per item."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from holdfast.api.harness import harness
from holdfast.api.task_errors import BranchCancelled
from holdfast.limits import MAX_CONCURRENCY_DEFAULT

T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")


@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    /,
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
) -> tuple[A, B]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    /,
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
) -> tuple[A, B, C]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    /,
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
) -> tuple[A, B, C, D]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    /,
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
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
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
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
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
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
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
) -> tuple[A, B, C, D, E, F, G, H]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> tuple[A | Exception, B | Exception]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> tuple[A | Exception, B | Exception, C | Exception]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> tuple[A | Exception, B | Exception, C | Exception, D | Exception]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> tuple[A | Exception, B | Exception, C | Exception, D | Exception, E | Exception]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> tuple[
    A | Exception,
    B | Exception,
    C | Exception,
    D | Exception,
    E | Exception,
    F | Exception,
]: ...
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
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> tuple[
    A | Exception,
    B | Exception,
    C | Exception,
    D | Exception,
    E | Exception,
    F | Exception,
    G | Exception,
]: ...
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
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> tuple[
    A | Exception,
    B | Exception,
    C | Exception,
    D | Exception,
    E | Exception,
    F | Exception,
    G | Exception,
    H | Exception,
]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    /,
    *,
    tolerate: int,
    concurrency: int = 0,
) -> tuple[A | None, B | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    /,
    *,
    tolerate: int,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    /,
    *,
    tolerate: int,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    /,
    *,
    tolerate: int,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None, E | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    /,
    *,
    tolerate: int,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None, E | None, F | None]: ...
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
    *,
    tolerate: int,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None, E | None, F | None, G | None]: ...
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
    *,
    tolerate: int,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None, E | None, F | None, G | None, H | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    /,
    *,
    at_least: int,
    tolerate: int = ...,
    concurrency: int = 0,
) -> tuple[A | None, B | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    /,
    *,
    at_least: int,
    tolerate: int = ...,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    /,
    *,
    at_least: int,
    tolerate: int = ...,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    /,
    *,
    at_least: int,
    tolerate: int = ...,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None, E | None]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    /,
    *,
    at_least: int,
    tolerate: int = ...,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None, E | None, F | None]: ...
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
    *,
    at_least: int,
    tolerate: int = ...,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None, E | None, F | None, G | None]: ...
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
    *,
    at_least: int,
    tolerate: int = ...,
    concurrency: int = 0,
) -> tuple[A | None, B | None, C | None, D | None, E | None, F | None, G | None, H | None]: ...
def parallel(
    *branches: Callable[[], Any],
    concurrency: int = 0,
    tolerate: int | None = None,
    at_least: int | None = None,
    return_exceptions: bool = False,
    cancel_others: bool = True,
) -> tuple[Any, ...]:
    """Run the branches concurrently, at most `concurrency` of them at the same time; with 0 all.
    The first failure fails the whole call and cancels the other branches. With
    `cancel_others=False` all branches end first, and the call raises the error of the first branch,
    in the order of the arguments, that failed.

    With `tolerate=n` up to n branches may fail, and the result has None in their places. With
    `at_least=n` the first n successes are enough: the other branches are cancelled, and the result
    has None for each branch that failed or was cancelled. The call raises the error of the branch
    after which n successes are no longer possible. With both, it also raises the first error that
    `tolerate` does not allow. With `return_exceptions=True` all branches end, and the result has
    the errors of those that failed. With `tolerate` or `at_least`, too, nothing is raised: where
    the call would raise or return without it, it returns, and the result has BranchCancelled for
    each branch that did not end. Raises ValueError for a number that is out of range.
    """
    _require("concurrency", concurrency, least=0)
    limits = _Limits(tolerate, at_least, return_exceptions, cancel_others)
    return tuple(_limited(branches, concurrency, limits, str(len(branches))))


@overload
def first(a: Callable[[], A], b: Callable[[], B], /) -> A | B: ...
@overload
def first(a: Callable[[], A], b: Callable[[], B], c: Callable[[], C], /) -> A | B | C: ...
@overload
def first(
    a: Callable[[], A], b: Callable[[], B], c: Callable[[], C], d: Callable[[], D], /
) -> A | B | C | D: ...
@overload
def first(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    /,
) -> A | B | C | D | E: ...
@overload
def first(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    /,
) -> A | B | C | D | E | F: ...
@overload
def first(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    g: Callable[[], G],
    /,
) -> A | B | C | D | E | F | G: ...
@overload
def first(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    g: Callable[[], G],
    h: Callable[[], H],
    /,
) -> A | B | C | D | E | F | G | H: ...
def first(*branches: Callable[[], Any]) -> Any:
    """Run the branches concurrently; the first that ends decides, and the others are cancelled.

    Return that branch's result, or raise its error.
    """
    results = _run(branches, needed=1, tolerated=0)
    return next((result for result in results if result is not None), None)


@overload
def each(
    items: Iterable[T],
    function: Callable[[T], R],
    /,
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
) -> list[R]: ...
@overload
def each(
    items: Iterable[T],
    function: Callable[[T], R],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> list[R | Exception]: ...
@overload
def each(
    items: Iterable[T],
    function: Callable[[list[T]], R],
    /,
    *,
    concurrency: int = 0,
    batch: int,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> list[R | Exception]: ...
@overload
def each(
    items: Iterable[T], function: Callable[[T], R], /, *, concurrency: int = 0, tolerate: int
) -> list[R | None]: ...
@overload
def each(
    items: Iterable[T],
    function: Callable[[list[T]], R],
    /,
    *,
    concurrency: int = 0,
    batch: int,
    cancel_others: bool = ...,
) -> list[R]: ...
@overload
def each(
    items: Iterable[T],
    function: Callable[[list[T]], R],
    /,
    *,
    concurrency: int = 0,
    tolerate: int,
    batch: int,
) -> list[R | None]: ...
@overload
def each(
    items: Iterable[T],
    function: Callable[[T], R],
    /,
    *,
    concurrency: int = 0,
    tolerate: int = ...,
    at_least: int,
) -> list[R | None]: ...
@overload
def each(
    items: Iterable[T],
    function: Callable[[list[T]], R],
    /,
    *,
    concurrency: int = 0,
    tolerate: int = ...,
    batch: int,
    at_least: int,
) -> list[R | None]: ...
@overload
def each(
    items: Iterable[tuple[A, B]],
    function: Callable[[A, B], R],
    /,
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
) -> list[R]: ...
@overload
def each(
    items: Iterable[tuple[A, B]],
    function: Callable[[A, B], R],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> list[R | Exception]: ...
@overload
def each(
    items: Iterable[tuple[A, B]],
    function: Callable[[A, B], R],
    /,
    *,
    concurrency: int = 0,
    tolerate: int,
) -> list[R | None]: ...
@overload
def each(
    items: Iterable[tuple[A, B]],
    function: Callable[[A, B], R],
    /,
    *,
    concurrency: int = 0,
    tolerate: int = ...,
    at_least: int,
) -> list[R | None]: ...
@overload
def each(
    items: Iterable[tuple[A, B, C]],
    function: Callable[[A, B, C], R],
    /,
    *,
    concurrency: int = 0,
    cancel_others: bool = ...,
) -> list[R]: ...
@overload
def each(
    items: Iterable[tuple[A, B, C]],
    function: Callable[[A, B, C], R],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
    tolerate: int = ...,
    at_least: int = ...,
) -> list[R | Exception]: ...
@overload
def each(
    items: Iterable[tuple[A, B, C]],
    function: Callable[[A, B, C], R],
    /,
    *,
    concurrency: int = 0,
    tolerate: int,
) -> list[R | None]: ...
@overload
def each(
    items: Iterable[tuple[A, B, C]],
    function: Callable[[A, B, C], R],
    /,
    *,
    concurrency: int = 0,
    tolerate: int = ...,
    at_least: int,
) -> list[R | None]: ...
def each(
    items: Iterable[Any],
    function: Callable[..., Any],
    /,
    *,
    concurrency: int = 0,
    tolerate: int | None = None,
    batch: int | None = None,
    at_least: int | None = None,
    return_exceptions: bool = False,
    cancel_others: bool = True,
) -> list[Any]:
    """Run `function` once per item, at most `concurrency` calls at the same time. At most 40 run at
    the same time, also with a greater number and with 0.

    A function that takes two or more arguments gets the parts of an item that is a tuple, as in
    `each(zip(orders, notes), lambda order, note: …)`.

    With `batch=n` each call gets a list of up to n items. With `return_exceptions=True` no call
    stops the others: the result has, in the place of each call that failed, its error. With
    `tolerate=n` up to n calls may fail, and the result has None in their places. With `at_least=n`
    the first n successes are enough. `return_exceptions` together with one of these two, and
    `cancel_others`, are as for `parallel`. Raises ValueError for a number that is out of range.
    """
    _require("concurrency", concurrency, least=0)
    _require("batch", 1 if batch is None else batch, least=1)
    given: Sequence[Any] = list(items)
    if batch is not None:
        given = [given[start : start + batch] for start in range(0, len(given), batch)]
    several = _takes_several(function)
    branches = [_calling(function, item, takes_several=several) for item in given]
    # The engine starts no more iterations at the same time.
    concurrency = min(concurrency or MAX_CONCURRENCY_DEFAULT, MAX_CONCURRENCY_DEFAULT)
    limits = _Limits(tolerate, at_least, return_exceptions, cancel_others)
    return _limited(branches, concurrency, limits, "the number of calls")


class _Limits(NamedTuple):
    """The rules that end a call before all its branches have ended, and that treat their errors."""

    tolerate: int | None
    at_least: int | None
    return_exceptions: bool
    cancel_others: bool

    @property
    def is_counted(self) -> bool:
        return self.tolerate is not None or self.at_least is not None


def _limited(
    branches: Sequence[Callable[[], Any]], concurrency: int, limits: _Limits, shown: str
) -> list[Any]:
    """Run the branches. `shown` is their number in an error."""
    tolerated = _quorum(len(branches), limits.tolerate, limits.at_least, shown)
    if not limits.cancel_others:
        if limits.return_exceptions or limits.is_counted:
            raise ValueError(
                "cancel_others is not given with return_exceptions, tolerate or at_least"
            )
        return _all_ended(branches, concurrency)
    returns_errors = limits.return_exceptions and limits.is_counted
    if limits.return_exceptions and not returns_errors:
        branches = [_returning_errors(branch) for branch in branches]
    return _run(
        branches,
        concurrency=concurrency,
        needed=limits.at_least,
        tolerated=tolerated,
        returns_errors=returns_errors,
    )


def _all_ended(branches: Sequence[Callable[[], Any]], concurrency: int) -> list[Any]:
    """Run all branches to their ends, and raise the error of the first one that failed."""
    errors: dict[int, Exception] = {}
    noted = [_noting_error(branch, number, errors) for number, branch in enumerate(branches)]
    results = _run(noted, concurrency=concurrency)
    if errors:
        raise errors[min(errors)]
    return results


def _noting_error(
    branch: Callable[[], Any], number: int, errors: dict[int, Exception]
) -> Callable[[], Any]:
    def noted() -> Any:
        try:
            return branch()
        except Exception as error:  # noqa: BLE001 - the call raises it
            errors[number] = error
            return None

    return noted


def _quorum(count: int, tolerate: int | None, at_least: int | None, shown: str) -> int:
    """Return how many of the branches may fail. `shown` is their number in the error."""
    _require("tolerate", tolerate or 0, least=0)
    if at_least is None:
        return tolerate or 0
    if not 1 <= at_least <= count:
        raise ValueError(f"at_least is not 1 to {shown}")
    # One failure more than that leaves too few branches: its error is the one to raise.
    spare = count - at_least
    return spare if tolerate is None else min(tolerate, spare)


def run_after(branches: Sequence[Callable[[], Any]], after: Sequence[Sequence[int]]) -> list[Any]:
    """Run branch n when the branches `after[n]`, which come before it in the list, have ended.
    Branches that do not wait for each other run concurrently.
    """
    stand_in = harness.get()
    if stand_in is not None:
        return stand_in.run_branches(branches, concurrency=0, needed=None, tolerated=0, after=after)
    return _one_by_one(branches, None, 0)


def _require(name: str, number: int, *, least: int) -> None:
    if number < least:
        raise ValueError(f"{name} is not {least} or more")


def _calling(function: Callable[..., Any], item: Any, *, takes_several: bool) -> Callable[[], Any]:
    if takes_several and isinstance(item, tuple):
        return lambda: function(*item)
    return lambda: function(item)


def _takes_several(function: Callable[..., Any]) -> bool:
    """Return True for a function that cannot be called with one argument: it gets the parts of a
    tuple. A function that takes one argument gets the tuple.
    """
    own = getattr(function, "function", function)  # of a task or workflow
    try:
        inspect.signature(own).bind(None)
    except TypeError:
        return True
    except ValueError:  # a builtin without a signature
        return False
    return False


def _returning_errors(branch: Callable[[], Any]) -> Callable[[], Any]:
    def settled() -> Any:
        try:
            return branch()
        except Exception as error:  # noqa: BLE001 - the error is the result
            return error

    return settled


def _run(
    branches: Sequence[Callable[[], Any]],
    *,
    concurrency: int = 0,
    needed: int | None = None,
    tolerated: int = 0,
    returns_errors: bool = False,
) -> list[Any]:
    stand_in = harness.get()
    if stand_in is not None:
        return stand_in.run_branches(
            branches,
            concurrency=concurrency,
            needed=needed,
            tolerated=tolerated,
            returns_errors=returns_errors,
        )
    return _one_by_one(branches, needed, tolerated, returns_errors=returns_errors)


def unended(count: int, *, returns_errors: bool) -> list[Any]:
    """Return the results of branches of which none has ended."""
    if returns_errors:
        from holdfast.asl import error_names  # noqa: PLC0415 - few calls need it

        return [BranchCancelled(error_names.BRANCH_CANCELLED_CAUSE) for _ in range(count)]
    return [None] * count


def _one_by_one(
    branches: Sequence[Callable[[], Any]],
    needed: int | None,
    tolerated: int,
    *,
    returns_errors: bool = False,
) -> list[Any]:
    """Run the branches in a direct run without a harness: each begins when the one before has
    ended.
    """
    results = unended(len(branches), returns_errors=returns_errors)
    succeeded = failed = 0
    for number, branch in enumerate(branches):
        if succeeded == needed or failed > tolerated:
            break
        try:
            results[number] = branch()
            succeeded += 1
        except Exception as error:
            failed += 1
            if returns_errors:
                results[number] = error
            elif failed > tolerated:
                raise
    return results
