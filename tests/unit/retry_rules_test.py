"""Retry rules: which errors of a task are retried, in a World and in the definition."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from holdfast import Retry, TaskError, seconds, task, workflow
from holdfast.asl.parsing.parse import parse_definition
from holdfast.compiler.compile import compile_workflow
from holdfast.core.retry import delay_ms
from holdfast.errors import WorkflowError
from holdfast.proofs.bounds import retry_seconds_of
from holdfast.testing import World, in_turn
from tests.unit.targets_test import exported, refusals


class Declined(TaskError): ...  # noqa: N818


class Stolen(Declined): ...


@task(retry=Retry(max_attempts=4, not_on=(Declined,)))
def charge(order: str) -> str:
    return order


@workflow
def pay(order: str) -> str:
    return charge(order)


def test_an_error_of_not_on_ends_the_retries_of_all_others() -> None:
    run = World({charge: in_turn(OSError("down"), Stolen("card 7"), "p1")}).run(pay, "o1")

    assert (run.status, run.error) == ("FAILED", "Stolen")
    assert [call.attempt for call in run.calls_of(charge)] == [1, 2]


def test_other_errors_are_retried() -> None:
    assert World({charge: in_turn(OSError("down"), "p1")}).run(pay, "o1").output == "p1"


def test_the_definition_names_the_errors_and_their_subclasses_first() -> None:
    retriers = compile_workflow(pay).asl["States"]["charge"]["Retry"]

    assert retriers[0] == {"ErrorEquals": ["Declined", "Stolen"], "MaxAttempts": 0}
    assert retriers[1]["ErrorEquals"] == ["States.ALL"]


def test_a_rule_that_never_retries_is_refused() -> None:
    with pytest.raises(WorkflowError, match="HF061"):
        Retry(not_on=(Exception,))


# -- a list of delays ------------------------------------------------------------------------------

UNEVEN = Retry(delays=[seconds(2), seconds(5), seconds(30)])


@task(retry=UNEVEN)
def fetch(url: str) -> str:
    return url


@workflow
def fetched(url: str) -> str:
    return fetch(url)


@task(retry=Retry(delays=[seconds(2), seconds(5)], max_attempts=5))
def fetch_long(url: str) -> str:
    return url


@workflow
def fetched_long(url: str) -> str:
    return fetch_long(url)


@task(retry=Retry(delays=[seconds(1), seconds(10), seconds(100)]))
def fetch_even(url: str) -> str:
    return url


@workflow
def fetched_even(url: str) -> str:
    return fetch_even(url)


@task(retry=Retry(delays=[seconds(1), seconds(10), seconds(100)], max_attempts=6))
def fetch_capped(url: str) -> str:
    return url


@workflow
def fetched_capped(url: str) -> str:
    return fetch_capped(url)


@task(retry=Retry(delays=[seconds(2), seconds(5), seconds(30)], jitter=True))
def fetch_drawn(url: str) -> str:
    return url


@workflow
def fetched_drawn(url: str) -> str:
    return fetch_drawn(url)


DOWN = OSError("down")


@pytest.mark.parametrize(
    ("flow", "called", "moments"),
    [
        (fetched, fetch, [0, 2, 7, 37]),
        (fetched_long, fetch_long, [0, 2, 7, 12, 17]),
        (fetched_even, fetch_even, [0, 1, 11, 111]),
        (fetched_capped, fetch_capped, [0, 1, 11, 111, 211, 311]),
    ],
)
def test_each_retry_waits_for_its_own_delay_in_both_runs(
    flow: Any, called: Any, moments: list[int]
) -> None:
    failures = [DOWN] * (len(moments) - 1)
    assert World({called: in_turn(*failures, "page")}).run(flow, "a").output == "page"
    run = World({called: in_turn(*failures, DOWN, "page")}).run(flow, "a")
    assert run.status == "FAILED"
    assert [call.at for call in run.calls_of(called)] == moments


@pytest.mark.parametrize(
    ("flow", "name", "seconds_"),
    [
        (fetched, "fetch", 37),
        (fetched_long, "fetch_long", 17),
        (fetched_even, "fetch_even", 111),
        (fetched_capped, "fetch_capped", 311),
    ],
)
def test_check_adds_the_delays(flow: Any, name: str, seconds_: int) -> None:
    assert retry_seconds_of(compile_workflow(flow).asl["States"][name]) == seconds_


def test_the_definition_has_the_list_where_no_backoff_gives_it() -> None:
    (uneven,) = compile_workflow(fetched).asl["States"]["fetch"]["Retry"]
    (even,) = compile_workflow(fetched_even).asl["States"]["fetch_even"]["Retry"]

    assert uneven["Holdfast"] == {"Delays": [2, 5, 30]}
    assert (uneven["MaxAttempts"], "JitterStrategy" in uneven) == (3, False)
    assert even == {
        "ErrorEquals": ["States.ALL"],
        "IntervalSeconds": 1,
        "MaxAttempts": 3,
        "BackoffRate": 10.0,
    }


def test_jitter_draws_a_part_of_each_delay() -> None:
    asl: Any = compile_workflow(fetched_drawn).asl
    state: Any = parse_definition(asl).states["fetch_drawn"]
    assert [delay_ms(state.retry[0], used, 0.5) for used in (0, 1, 2)] == [1_000, 2_500, 15_000]


EXPORTED = """
@task(retry=Retry(delays=[{}]))
def slow(n: int) -> int: ...
@workflow
def flow(n: int) -> int:
    return slow(n)
"""


def test_step_functions_takes_delays_that_a_backoff_gives(tmp_path: Path) -> None:
    even = exported(tmp_path, EXPORTED.format("seconds(3), seconds(6), seconds(12)"))
    assert even.asl["States"]["slow"]["Retry"][-1]["BackoffRate"] == 2.0


def test_step_functions_refuses_other_delays(tmp_path: Path) -> None:
    uneven = EXPORTED.format("seconds(3), seconds(6), seconds(11)")
    assert refusals(tmp_path, uneven) == [("HF064", "return slow(n)")]


@pytest.mark.parametrize(
    "settings",
    [
        {"delays": []},
        {"delays": [seconds(0)]},
        {"delays": [seconds(1.5)]},
        {"delays": [seconds(2)], "interval": seconds(1)},
        {"delays": [seconds(2)], "backoff": 2.0},
        {"delays": [seconds(2)], "max_delay": seconds(9)},
        {"delays": [seconds(2), seconds(3)], "max_attempts": 2},
        {"delays": [seconds(2)], "max_attempts": 0},
    ],
)
def test_delays_that_contradict_another_setting_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(WorkflowError) as refused:
        Retry(**settings)
    assert refused.value.code == "HF061"
    assert refused.value.help


def test_a_copy_of_a_retry_with_delays_keeps_them() -> None:
    assert dataclasses.replace(UNEVEN, on=(OSError,)).delays == UNEVEN.delays
