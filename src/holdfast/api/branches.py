"""Concurrent branches: all of them, the first, some of them, or one per item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar, overload

from holdfast.api.harness import harness
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
) -> tuple[A, B]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    /,
    *,
    concurrency: int = 0,
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
) -> tuple[A, B, C, D, E, F, G, H]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
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
) -> tuple[Any, ...]:
    """Run the branches concurrently, at most `concurrency` of them at the same time; with 0 all.
    The first failure fails the whole call.

    With `tolerate=n` up to n branches may fail, and the result has None in their places. With
    `at_least=n` the first n successes are enough: the other branches are cancelled, and the result
    has None for each branch that failed or was cancelled. The call raises the error of the branch
    after which n successes are no longer possible. With both, it also raises the first error that
    `tolerate` does not allow. With `return_exceptions=True` all branches end, and the result has
    the errors of those that failed; it is not given with `tolerate` or `at_least`. Raises
    ValueError for a number that is out of range.
    """
    _require("concurrency", concurrency, least=0)
    quorum = _quorum(len(branches), tolerate, at_least, str(len(branches)))
    if return_exceptions:
        _require_alone(tolerate, at_least)
        branches = tuple(_returning_errors(branch) for branch in branches)
    return tuple(_run(branches, concurrency=concurrency, needed=at_least, tolerated=quorum))


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
def each(items: Iterable[T], function: Callable[[T], R], /, *, concurrency: int = 0) -> list[R]: ...
@overload
def each(
    items: Iterable[T],
    function: Callable[[T], R],
    /,
    *,
    concurrency: int = 0,
    return_exceptions: Literal[True],
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
) -> list[R | Exception]: ...
@overload
def each(
    items: Iterable[T], function: Callable[[T], R], /, *, concurrency: int = 0, tolerate: int
) -> list[R | None]: ...
@overload
def each(
    items: Iterable[T], function: Callable[[list[T]], R], /, *, concurrency: int = 0, batch: int
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
def each(
    items: Iterable[Any],
    function: Callable[[Any], Any],
    /,
    *,
    concurrency: int = 0,
    tolerate: int | None = None,
    batch: int | None = None,
    at_least: int | None = None,
    return_exceptions: bool = False,
) -> list[Any]:
    """Run `function` once per item, at most `concurrency` calls at the same time. At most 40 run at
    the same time, also with a greater number and with 0.

    With `batch=n` each call gets a list of up to n items. With `return_exceptions=True` no call
    stops the others: the result has, in the place of each call that failed, its error. It is not
    given with `tolerate` or `at_least`. With `tolerate=n` up to n calls may fail,
    and the result has None in their places. With `at_least=n` the first n successes are enough, as
    for `parallel`. Raises ValueError for a number that is out of range.
    """
    _require("concurrency", concurrency, least=0)
    _require("batch", 1 if batch is None else batch, least=1)
    given: Sequence[Any] = list(items)
    if batch is not None:
        given = [given[start : start + batch] for start in range(0, len(given), batch)]
    branches = [_calling(function, item) for item in given]
    tolerated = _quorum(len(branches), tolerate, at_least, "the number of calls")
    if return_exceptions:
        _require_alone(tolerate, at_least)
        branches = [_returning_errors(branch) for branch in branches]
    # The engine starts no more iterations at the same time.
    concurrency = min(concurrency or MAX_CONCURRENCY_DEFAULT, MAX_CONCURRENCY_DEFAULT)
    return _run(branches, concurrency=concurrency, needed=at_least, tolerated=tolerated)


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


def _calling(function: Callable[[Any], Any], item: Any) -> Callable[[], Any]:
    return lambda: function(item)


def _require_alone(tolerate: int | None, at_least: int | None) -> None:
    if tolerate is not None or at_least is not None:
        raise ValueError("return_exceptions is not given with tolerate or at_least")


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
) -> list[Any]:
    stand_in = harness.get()
    if stand_in is not None:
        return stand_in.run_branches(
            branches, concurrency=concurrency, needed=needed, tolerated=tolerated
        )
    return _one_by_one(branches, needed, tolerated)


def _one_by_one(
    branches: Sequence[Callable[[], Any]], needed: int | None, tolerated: int
) -> list[Any]:
    """Run the branches in a direct run without a harness: each begins when the one before has
    ended.
    """
    results: list[Any] = [None] * len(branches)
    succeeded = failed = 0
    for number, branch in enumerate(branches):
        if succeeded == needed:
            break
        try:
            results[number] = branch()
            succeeded += 1
        except Exception:
            failed += 1
            if failed > tolerated:
                raise
    return results
