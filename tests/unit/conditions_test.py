"""`wait_for_condition`: as Python and compiled, in the core, in the API and on the terminal."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from holdfast import (
    Client,
    days,
    hours,
    minutes,
    seconds,
    wait_for_condition,
)
from holdfast.asl.validation.validate import diagnose_to_run
from holdfast.cli.execution_screen import history
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.core.facts import Succeeded
from holdfast.core.waits import pending_commands
from holdfast.errors import WorkflowError
from holdfast.testing import World, in_turn, takes
from holdfast_simulator.invariants import check
from tests.unit import condition_flows as flows
from tests.unit import condition_refused
from tests.unit.client_kit import MemoryStack
from tests.unit.core_kit import START_MS, Case, one

POLL = {"Poll": {"Seconds": 60, "Backoff": 2.0, "SecondsMax": 300}}


def polled(**more: Any) -> Case:
    state = {"Type": "Task", "Resource": "holdfast:poll:check", "Holdfast": POLL, **more}
    return Case(one(state)).start({})


# -- in a test of a workflow -----------------------------------------------------------------------


def test_the_task_is_called_at_growing_intervals_until_it_has_a_value() -> None:
    world = World({flows.check: in_turn(*(None,) * 6, "parcel")})
    run = world.run(flows.deliver, order="o1")

    assert run.output == "PARCEL"
    assert run.steps == ["check"] * 7
    assert run.ended == minutes(5 + 10 + 20 + 40 + 60 + 60)


def test_a_value_at_once_needs_one_call() -> None:
    run = World({flows.check: "parcel"}).run(flows.deliver, order="o1")
    assert (run.output, run.steps, run.ended) == ("PARCEL", ["check"], timedelta())


def test_an_error_is_retried_as_the_task_says_and_the_intervals_begin_anew() -> None:
    world = World({flows.check: in_turn(None, None, ValueError("busy"), None, "p")})
    run = world.run(flows.deliver, order="o1")
    assert run.ended == minutes(5 + 10) + seconds(10) + minutes(5)


def test_an_error_without_a_retry_ends_the_wait() -> None:
    run = World({flows.check: in_turn(None, LookupError("gone"))}).run(flows.deliver, order="o1")
    assert run.error == "LookupError"


def test_a_timeout_around_it_bounds_the_whole_wait() -> None:
    run = World({flows.check: None}).run(flows.deliver, order="o1")
    assert (run.error, run.ended) == ("BlockTimeout", days(3))


def test_a_stop_ends_the_wait_at_once() -> None:
    world = World({flows.check: None})
    world.stop(at=hours(1))
    run = world.run(flows.deliver, order="o1")
    assert (run.status, run.ended) == ("ABORTED", hours(1))


def test_a_poll_has_the_time_out_of_its_task() -> None:
    outcome = in_turn(None, takes(minutes(9), "late"))
    run = World({flows.check: outcome}).run(flows.deliver, order="o1")
    assert run.error == "States.Timeout"


def test_polls_beside_each_other_have_intervals_of_their_own() -> None:
    world = World({flows.check: in_turn(None, None, None, "a", "b")})
    assert sorted(world.run(flows.both, order="o").output) == ["a", "b"]


def test_outside_an_engine_a_condition_that_is_not_met_is_refused() -> None:
    with pytest.raises(WorkflowError, match="no time passes"):
        wait_for_condition(flows.never_there, every=minutes(5))("o1")
    assert wait_for_condition(flows.there, every=minutes(5))("o1") == "o1"


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"every": seconds(0.5)}, "has every="),
        ({"every": minutes(5), "backoff": 0.5}, "has backoff="),
        ({"every": minutes(5), "most": minutes(1)}, "shorter than"),
    ],
)
def test_settings_that_no_wait_can_have_are_refused(settings: Any, what: str) -> None:
    with pytest.raises(WorkflowError, match=what) as refused:
        wait_for_condition(flows.check, **settings)
    assert refused.value.code == "HF370"


def test_a_task_that_never_returns_none_is_refused() -> None:
    waits = condition_refused.waits_for_nothing
    with pytest.raises(CompileErrors) as refused:
        compile_workflow(waits)
    assert refused.value.code == "HF371"


def test_a_compiled_wait_is_a_valid_definition() -> None:
    assert not diagnose_to_run(compile_workflow(flows.deliver).asl)


@pytest.mark.parametrize(
    "state",
    [
        {"Resource": "holdfast:poll:check"},
        {"Resource": "holdfast:task:check", "Holdfast": POLL},
        {"Resource": "holdfast:poll:check", "Holdfast": {"Poll": {"Seconds": 0}}},
    ],
)
def test_a_definition_says_for_each_polled_task_when_it_is_called(state: Any) -> None:
    assert diagnose_to_run(one({"Type": "Task", **state}))


# -- in the core -----------------------------------------------------------------------------------


def test_a_poll_without_a_value_is_one_event_and_no_failure() -> None:
    case = polled()
    case.offer(Succeeded(0, 1, None))
    (event,) = [one for one in case.events if one.type == "ConditionUnmet"]
    waiting = case.waiting()

    assert event.holdfast["polls"] == 1
    assert (waiting.attempt, waiting.due_ms, waiting.claim) == (2, START_MS + 60_000, None)
    assert [one.type for one in case.events if "Failed" in one.type] == []
    assert len(pending_commands(case.state)) == 1


def test_a_late_result_of_an_earlier_poll_has_no_effect() -> None:
    case = polled()
    case.offer(Succeeded(0, 1, None))
    seen = len(case.events)
    case.offer(Succeeded(0, 1, "late"), Succeeded(0, 1, None))
    assert len(case.events) == seen
    case.offer(Succeeded(0, 2, "in time"))
    assert case.output == "in time"


def test_null_of_a_task_that_is_not_polled_is_its_result() -> None:
    case = Case(one({"Type": "Task", "Resource": "holdfast:task:check"})).start({})
    case.offer(Succeeded(0, 1, None))
    assert case.status == "SUCCEEDED"


# -- paused ----------------------------------------------------------------------------------------


def test_a_pause_holds_the_polls_and_a_resume_continues_them() -> None:
    stack = MemoryStack("tests.unit.condition_flows")
    client = Client.of(stack.api)

    def polls_after(passed: timedelta) -> int:
        until_ms = stack.world.now_ms + int(passed.total_seconds() * 1_000)
        stack.world.run(until_ms=until_ms)
        stack.world.now_ms = until_ms
        (wait,) = client.describe("order-1")["waits"]
        return int(wait["polls"])

    client.start(flows.forever, "o1", name="order-1")
    before = polls_after(minutes(20))
    client.pause("order-1", "the shop is closed")
    assert polls_after(hours(12)) == before
    client.resume("order-1", "it is open")
    # The intervals are five minutes by now. What is left of the last one passes first.
    assert polls_after(minutes(21)) - before == 4
    assert check(stack.world) == []


# -- for people ------------------------------------------------------------------------------------


def test_show_and_history_count_the_polls() -> None:
    stack = MemoryStack("tests.unit.condition_flows")
    client = Client.of(stack.api)
    client.start(flows.forever, "o1", name="order-1")
    stack.world.run(until_ms=stack.world.now_ms + 20 * 60_000)
    (wait,) = client.describe("order-1")["waits"]
    events = client.history("order-1")
    polls = [event for event in events if event["type"] == "ConditionUnmet"]
    printed = "\n".join(line.plain for line in history(events).lines(200))

    assert (wait["kind"], wait["task"], wait["polls"]) == ("condition", "never_there", len(polls))
    assert wait["polled_at"] < wait["next_poll_at"]
    assert len(polls) > 2
    assert printed.count("ConditionUnmet") == 1
    assert f"polled {len(polls)} times" in printed
