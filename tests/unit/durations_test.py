"""Computed durations: no negative sleep, and a time-out is at least a second."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    ask,
    compensating,
    role,
    seconds,
    sleep,
    task,
    timeout,
    wait_for_event,
    workflow,
)
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World
from tests.unit.dsl_kit import loaded


@task
def undo_it(number: int) -> None: ...


@task
def work() -> int:
    return 1


@workflow
def naps(number: int, grace: timedelta) -> int:
    with compensating() as undo:
        undo(undo_it, number)
        sleep(seconds(number))
        sleep(grace - seconds(5))
        return work()


@workflow
def waits_for_an_event(number: int) -> int:
    with compensating() as undo:
        undo(undo_it, number)
        return wait_for_event("bank", int, key="k", timeout=seconds(number))


@workflow
def waits_for_an_answer(number: int) -> int:
    with compensating() as undo:
        undo(undo_it, number)
        return ask("How many?", int, assignee=role("clerk"), timeout=seconds(number) * 2)


@workflow
def bounds_a_block(number: int) -> int:
    with compensating() as undo:
        undo(undo_it, number)
        with timeout(seconds(number)):
            return work()


@workflow
def goes_on_without(number: int) -> int:
    try:
        with timeout(seconds(number)):
            return work()
    except Exception:  # noqa: BLE001 - what is tried here
        return -1


BOUNDED = [waits_for_an_event, waits_for_an_answer, bounds_a_block]


@pytest.mark.parametrize("number", [-3, 0])
def test_a_sleep_of_zero_or_less_ends_at_once(number: int) -> None:
    run = World({work: 7}).run(naps, number, timedelta(seconds=-number))
    assert (run.output, run.ended, run.steps) == (7, timedelta(), ["work"])


def test_a_sleep_that_is_computed_takes_its_time() -> None:
    run = World({work: 7}).run(naps, 60, timedelta(minutes=1))
    assert run.ended == timedelta(seconds=115)


@pytest.mark.parametrize("number", [-3, 0])
@pytest.mark.parametrize("flow", BOUNDED, ids=lambda flow: flow.name)
def test_a_time_out_below_a_second_is_an_error_that_is_undone(flow: Any, number: int) -> None:
    run = World({work: 7}).run(flow, number)
    assert (run.error, run.cause) == ("ValueError", "a time-out is at least a second")
    assert run.compiled_error == "States.QueryEvaluationError"
    assert run.steps == ["undo_it"]


def test_a_time_out_below_a_second_can_be_caught() -> None:
    world = World({work: 7})
    assert [world.run(goes_on_without, number).output for number in (-1, 0, 1)] == [-1, -1, 7]


@pytest.mark.parametrize("flow", BOUNDED, ids=lambda flow: flow.name)
def test_a_time_out_of_a_second_is_one(flow: Any) -> None:
    world = World({work: 7, "bank": 7, "How many?": 7})
    assert world.run(flow, 1).output == 7


HEADER = """
from __future__ import annotations
from datetime import timedelta
from typing import Any
from holdfast import *
@task
def echo(value: int) -> int: ...
@workflow
def flow(n: int, given: Any, wait: timedelta) -> Any:
"""


@pytest.mark.parametrize(
    "body",
    [
        "found = minutes(5) if n else given\n    return found",
        "found = given\n    if n:\n        found = minutes(5)\n    return found",
        "found = minutes(5) if n else 3\n    return found",
        "return {'given': given, 'wait': minutes(n)}",
        "return {'given': given} | {'wait': minutes(n)}",
        "return {'given': given}.get('wait', minutes(n))",
        "return [minutes(n) if k else given for k in [n]]",
        "return {'a': 1, 'b': '', 'c': None, 'd': True, 'e': 1.5, 'j': given, 'k': days(n)}",
        "return each([n], lambda k: minutes(k))",
        "return first(lambda: minutes(n), lambda: echo(n))",
    ],
)
def test_a_duration_that_could_leave_as_a_number_is_refused(body: str, tmp_path: Path) -> None:
    source = f"{HEADER}    {body}\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors) as caught:
        compile_workflow(module.flow)
    assert [error.code for error in caught.value.diagnostics] == ["HF052"]


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("return minutes(n)", "PT3M"),
        ("found = minutes(n) if n else None\n    return found", "PT3M"),
        ("found = minutes(n) if n else 'none'\n    return found", "PT3M"),
        ("found = first(lambda: minutes(n), lambda: wait)\n    return found", "PT3M"),
        ("found: Any = minutes(n)\n    return found", "PT3M"),
        ("return {'given': given, 'seconds': minutes(n).total_seconds()}['seconds']", 180),
    ],
)
def test_a_duration_leaves_as_pydantic_writes_it(body: str, output: Any, tmp_path: Path) -> None:
    with loaded(tmp_path, f"{HEADER}    {body}\n") as module:
        run = World().run_json(module.flow, {"n": 3, "given": "x", "wait": "PT1H"})
    assert run.end.output == output


@workflow
def does_nothing_in_time(grace: timedelta) -> int:
    with timeout(grace):
        pass
    return work()


def test_a_block_that_does_nothing_still_needs_a_time() -> None:
    for grace in ("PT0S", "-PT10S"):
        assert World({work: 1}).run_json(does_nothing_in_time, {"grace": grace}).status == "FAILED"
    assert World({work: 1}).run_json(does_nothing_in_time, {"grace": "PT1S"}).output == 1
