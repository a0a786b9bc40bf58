"""The testing kit keeps the limits of tasks in virtual time, and that of the branches of a step."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import (
    BlockTimeout,
    Limit,
    Retry,
    Throttled,
    each,
    per_second,
    seconds,
    task,
    timeout,
    workflow,
)
from holdfast.api.workflows import Workflow
from holdfast.core import lanes
from holdfast.testing import World, direct, fails, takes

BANK = Limit("bank", rate=per_second(2), burst=1)
LEDGER = Limit("ledger", concurrency=2)


@task(limits=[BANK], retry=Retry(max_attempts=2, interval=seconds(1)))
def transfer(number: int) -> int:
    return number


@task(limits=[LEDGER])
def book(number: int) -> int:
    return number


@task(limits=[LEDGER, BANK])
def settle(number: int) -> int:
    return number


@task(limits=[Limit("customer", concurrency=1).by("customer")])
def serve(customer: str) -> str:
    return customer


@task
def free(number: int) -> int:
    return number


@workflow
def transfer_all(numbers: list[int]) -> list[int]:
    return each(numbers, transfer, concurrency=40)


@workflow
def book_all(numbers: list[int]) -> list[int]:
    return each(numbers, book, concurrency=40)


@workflow
def settle_all(numbers: list[int]) -> list[int]:
    return each(numbers, settle, concurrency=40)


@workflow
def serve_all(customers: list[str]) -> list[str]:
    return each(customers, serve, concurrency=40)


@workflow
def call_free() -> int:
    return free(1)


@workflow
def in_time(numbers: list[int]) -> str:
    try:
        with timeout(seconds(1)):
            each(numbers, settle, concurrency=40)
    except BlockTimeout:
        pass
    return str(settle(9))


def _starts(world: World, flow: Workflow[[list[int]], list[int]], count: int) -> list[float]:
    run = world.run(flow, list(range(count)))
    assert run.status == "SUCCEEDED"
    return [call.at for call in run.calls]


def test_a_rate_spreads_the_attempts_of_branches() -> None:
    starts = _starts(World({transfer: lambda number: number}), transfer_all, 5)
    assert starts == [0, 0.5, 1, 1.5, 2]


def test_a_burst_begins_at_once_after_a_pause() -> None:
    world = World(
        {transfer: lambda number: number}, limits=[Limit("bank", rate=per_second(2), burst=3)]
    )
    assert _starts(world, transfer_all, 5) == [0, 0, 0, 0.5, 1]


def test_no_more_attempts_run_than_the_concurrency_allows() -> None:
    world = World({book: takes(seconds(3), lambda number: number)})
    assert _starts(world, book_all, 5) == [0, 0, 3, 3, 6]


def test_two_limits_must_both_let_an_attempt_begin() -> None:
    world = World({settle: takes(seconds(3), lambda number: number)})
    assert _starts(world, settle_all, 5) == [0, 0.5, 3, 3.5, 6]


def test_each_value_of_the_key_has_a_limit_of_its_own() -> None:
    world = World({serve: takes(seconds(3), lambda customer: customer)})
    run = world.run(serve_all, ["ada", "ada", "bob"])
    starts = [(call.arguments["customer"], call.at) for call in run.calls]
    assert starts == [("ada", 0), ("bob", 0), ("ada", 3)]


def test_a_throttled_attempt_waits_and_counts_no_retry() -> None:
    late = Throttled(retry_after=seconds(7))
    run = World({transfer: fails(late, times=3, then=1)}).run(transfer_all, [1])
    assert run.output == [1]
    assert [(call.at, call.attempt) for call in run.calls] == [(0, 1), (7, 1), (14, 1), (21, 1)]


def test_a_throttled_attempt_closes_its_limit_for_the_others() -> None:
    late = Throttled(retry_after=seconds(7))
    run = World({transfer: fails(late, times=1, then=1)}).run(transfer_all, [1, 2])
    assert [call.at for call in run.calls] == [0, 7, 7.5]


def test_without_limits_throttled_is_an_error() -> None:
    run = World({free: Throttled("slow down")}).run(call_free)
    assert (run.status, run.error) == ("FAILED", "Throttled")


def test_an_attempt_that_is_cancelled_in_the_queue_leaves_it() -> None:
    world = World({settle: takes(seconds(5), lambda number: number)})
    run = world.run(in_time, [1, 2, 3, 4])
    assert run.output == "9"
    assert run.ended == timedelta(seconds=6)


@pytest.mark.parametrize("limit", [Limit("bank", rate=per_second(10), burst=1)])
def test_a_test_may_replace_a_limit_by_name(limit: Limit) -> None:
    world = World({transfer: lambda number: number}, limits=[limit])
    assert _starts(world, transfer_all, 3) == [0, 0.1, 0.2]


# -- the branches of a step ------------------------------------------------------------------------


@workflow
def next_numbers(numbers: list[int]) -> list[int]:
    return each(numbers, lambda number: number + 1)


@task
def post(number: int) -> int:
    return number


@workflow
def post_or_say(numbers: list[int]) -> str:
    try:
        each(numbers, post, return_exceptions=True)
    except Exception as err:  # noqa: BLE001 - it reads the error of the engine
        return f"{type(err).__name__}: {err}"
    return "booked"


@pytest.fixture
def _sixty(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lanes, direct):
        monkeypatch.setattr(module, "LANES_MAX", 60)


@pytest.mark.usefixtures("_sixty")
def test_a_list_that_is_too_long_fails_as_in_the_engine() -> None:
    assert World().run(next_numbers, list(range(60))).output == list(range(1, 61))
    run = World().run(next_numbers, list(range(61)))
    assert run.error == run.compiled_error == "Holdfast.TooManyLanes"
    assert run.cause.startswith("61 branches or iterations in one state; 60 are allowed.")


@pytest.mark.usefixtures("_sixty")
def test_a_handler_reads_the_error_of_a_list_that_is_too_long() -> None:
    run = World().run(post_or_say, list(range(61)))
    assert run.output.startswith("Holdfast.TooManyLanes: 61 branches or iterations in one state")
