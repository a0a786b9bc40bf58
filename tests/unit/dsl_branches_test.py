"""Branches of a workflow function that runs as plain Python, without an engine: one by one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import TaskError, each, first, minutes, parallel, seconds, sleep_until, task


class Broken(TaskError):  # noqa: N818
    pass


class Log(list[str]):
    """Branches that say when they begin."""

    def gives(self, name: str) -> Callable[[], str]:
        def branch() -> str:
            self.append(name)
            return name

        return branch

    def fails(self, name: str) -> Callable[[], str]:
        def branch() -> str:
            self.append(name)
            raise Broken(name)

        return branch


def test_the_first_branch_wins_and_the_others_never_begin() -> None:
    log = Log()
    assert first(log.gives("a"), log.gives("b")) == "a"
    assert log == ["a"]


def test_the_first_branch_decides_also_when_it_fails() -> None:
    log = Log()
    with pytest.raises(Broken, match="a"):
        first(log.fails("a"), log.gives("b"))
    assert log == ["a"]


def test_a_quorum_ends_with_enough_successes() -> None:
    log = Log()
    assert parallel(log.fails("a"), log.gives("b"), log.gives("c"), at_least=1) == (None, "b", None)
    assert log == ["a", "b"]


def test_a_quorum_fails_when_too_few_are_left() -> None:
    log = Log()
    with pytest.raises(Broken, match="b"):
        parallel(log.fails("a"), log.fails("b"), log.gives("c"), at_least=2)
    assert log == ["a", "b"]


def test_tolerated_failures_leave_none_in_their_places() -> None:
    def half(number: int) -> int:
        if number % 2:
            raise Broken(str(number))
        return number // 2

    assert each([0, 1, 2, 3], half, tolerate=2) == [0, None, 1, None]
    with pytest.raises(Broken, match="3"):
        each([0, 1, 2, 3], half, tolerate=1)


def test_enough_of_many_leave_none_for_the_others() -> None:
    def whole(number: int) -> int:
        if number == 0:
            raise Broken(str(number))
        return number

    assert each([0, 1, 2, 3], whole, at_least=2) == [None, 1, 2, None]
    with pytest.raises(Broken, match="0"):
        each([1, 0], whole, at_least=2)


def test_batches_are_slices_of_the_items() -> None:
    assert each(range(5), lambda some: some, batch=2) == [[0, 1], [2, 3], [4]]
    assert each([], lambda some: some, batch=2) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parallel(str, str, at_least=0), "at_least is not 1 to 2"),
        (lambda: parallel(str, str, at_least=3), "at_least is not 1 to 2"),
        (lambda: each([1], str, concurrency=-1), "concurrency is not 0 or more"),
        (lambda: each([1], str, tolerate=-1), "tolerate is not 0 or more"),
        (lambda: each([1], str, batch=0), "batch is not 1 or more"),
        (lambda: each([1], str, at_least=2), "at_least is not 1 to the number of calls"),
        (lambda: each([], str, at_least=1), "at_least is not 1 to the number of calls"),
        (lambda: sleep_until(datetime(2026, 1, 1)), "takes a datetime with a time zone"),  # noqa: DTZ001
    ],
)
def test_numbers_out_of_range_and_naive_moments_are_value_errors(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_without_an_engine_a_moment_is_not_waited_for() -> None:
    sleep_until(datetime.now(UTC) + timedelta(days=1))


def test_a_task_says_that_running_it_twice_is_the_same_as_once() -> None:
    @task(idempotent=True, heartbeat=minutes(1))
    def store(key: str) -> str:
        return key

    assert store.idempotent
    changed = store.options(heartbeat=seconds(5), label="store again")
    assert (changed.heartbeat, changed.label, changed.idempotent) == (
        seconds(5),
        "store again",
        True,
    )
    assert (store.heartbeat, store.label) == (minutes(1), None)
