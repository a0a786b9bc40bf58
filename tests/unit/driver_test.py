"""The loop that runs handlers: effects performed, faults thrown inside, tasks side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast.errors import ServiceFault
from holdfast.runtime.driver import run
from holdfast.runtime.effects import Begin, Clock, Effect, Finished, Handler, RunTask, TaskSucceeded


def task(name: str) -> RunTask:
    return RunTask(name, "task", None, "default", "r1", None, "flow", 0, 1, 0)


class Signals:
    """Tasks that end when the test says so, on a clock that stands still."""

    def __init__(self) -> None:
        self.events = {name: threading.Event() for name in ("a", "b")}
        self.now_ms = 0

    def __call__(self, effect: Effect) -> Any:
        match effect:
            case Clock():
                return self.now_ms
            case RunTask(name=name):
                self.events[name].wait(10)
                return TaskSucceeded(name)
        raise AssertionError(effect)


@contextmanager
def pool_of(size: int) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(size) as pool:
        yield pool


def test_a_handler_gets_each_result_and_its_own_comes_out() -> None:
    def handler() -> Handler:
        first = yield Clock()
        second = yield Clock()
        return [first, second]

    times = iter([1, 2])
    assert run(handler(), lambda _: next(times)) == [1, 2]


def test_a_fault_is_raised_inside_the_handler_which_may_continue() -> None:
    fault = ServiceFault("HF310", "slow down")

    def perform(effect: Effect) -> Any:
        raise fault

    def handler() -> Handler:
        try:
            yield Clock()
        except ServiceFault as caught:
            return caught
        raise AssertionError

    assert run(handler(), perform) is fault


def test_an_uncaught_fault_is_raised_to_the_caller() -> None:
    def handler() -> Handler:
        yield Clock()

    def perform(effect: Effect) -> Any:
        raise ServiceFault("HF310", "slow down")

    with pytest.raises(ServiceFault):
        run(handler(), perform)


def test_without_a_pool_tasks_run_at_once_and_their_results_wait_for_collection() -> None:
    def handler() -> Handler:
        yield Begin((0, 1), task("a"))
        yield Begin((1, 1), task("b"))
        return (yield Finished(0))

    results = run(handler(), lambda effect: TaskSucceeded(effect.name))  # type: ignore[union-attr]
    assert results == [((0, 1), TaskSucceeded("a")), ((1, 1), TaskSucceeded("b"))]


def test_results_that_are_ready_together_are_handed_over_together() -> None:
    signals = Signals()

    def handler() -> Handler:
        yield Begin((0, 1), task("a"))
        yield Begin((1, 1), task("b"))
        first = yield Finished(60_000)
        signals.events["b"].set()
        return first, (yield Finished(60_000))

    signals.events["a"].set()
    with pool_of(2) as pool:
        first, second = run(handler(), signals, pool)

    assert [ticket for ticket, _ in first] == [(0, 1)]
    assert [ticket for ticket, _ in second] == [(1, 1)]


def test_nobody_waits_past_the_given_moment() -> None:
    signals = Signals()
    signals.now_ms = 5_000

    def handler() -> Handler:
        yield Begin((0, 1), task("a"))
        empty = yield Finished(5_000)
        signals.events["a"].set()
        return empty, (yield Finished(60_000))

    with pool_of(1) as pool:
        empty, results = run(handler(), signals, pool)

    assert empty == []
    assert results == [((0, 1), TaskSucceeded("a"))]


def test_nothing_begun_is_nothing_finished() -> None:
    def handler() -> Handler:
        return (yield Finished(60_000))

    with pool_of(1) as pool:
        assert run(handler(), Signals(), pool) == []


def test_a_task_that_breaks_its_promise_and_raises_ends_the_handler() -> None:
    def handler() -> Handler:
        yield Begin((0, 1), task("a"))
        yield Finished(60_000)

    class Broken(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **options: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(RuntimeError("broken"))
            return future

    with Broken(1) as pool, pytest.raises(RuntimeError):
        run(handler(), Signals(), pool)
