"""The testing kit: its scripts, its time, its findings, and its messages."""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from holdfast import hours, minutes, seconds
from holdfast.asl.parsing import parse
from holdfast.testing import (
    Difference,
    ScriptError,
    World,
    check_workflow,
    definitions,
    fails,
    in_turn,
    never,
    real,
    takes,
)
from tests.unit import child_options_flows as child_flows
from tests.unit import testing_flows as flows
from tests.unit.dsl_kit import loaded
from tests.unit.testing_flows import CardDeclined, Payment

PAID = Payment(id="p1")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


# -- scripts ---------------------------------------------------------------------------------------


def test_a_scripted_value_is_the_tasks_result() -> None:
    run = World({flows.charge: PAID}).run(flows.buy, "o1", 5)
    assert run.output == "paid p1"
    assert run.steps == ["charge", "notify"]
    assert run.calls[0].arguments == {"order": "o1", "cents": 5}


def test_an_error_is_raised_by_every_attempt() -> None:
    run = World({flows.charge: CardDeclined("no")}).run(flows.buy, "o1", 5)
    assert run.output == "declined: no"


@pytest.mark.parametrize("times", [1, 2])
def test_attempts_that_fail_are_retried_with_their_delays(times: int) -> None:
    world = World({flows.charge: fails(ConnectionError("down"), times=times, then=PAID)})
    run = world.run(flows.buy, "o1", 5)
    assert run.output == "paid p1"
    assert [call.at for call in run.calls_of(flows.charge)] == [0, 10, 30][: times + 1]
    assert [call.attempt for call in run.calls_of(flows.charge)] == [1, 2, 3][: times + 1]


def test_the_last_failed_attempt_fails_the_call() -> None:
    run = World({flows.charge: ConnectionError("down")}).run(flows.buy, "o1", 5)
    assert (run.status, run.error, run.cause) == ("FAILED", "ConnectionError", "down")
    assert len(run.calls) == 3


def test_the_nth_attempt_can_be_scripted_to_fail() -> None:
    outcome = fails(CardDeclined("limit"), after=1, then=PAID)
    run = World({flows.charge: outcome}).run(flows.buy_twice, "o1")
    assert (run.status, run.error) == ("FAILED", "CardDeclined")
    assert [call.name for call in run.calls] == ["charge", "charge", "refund"]


def test_outcomes_come_in_turn_and_the_last_one_stays() -> None:
    outcome = in_turn(Payment(id="a"), Payment(id="b"))
    run = World({flows.charge: outcome}).run(flows.buy_often, ["x", "y", "z"])
    assert run.output == ["a", "b", "b"]


def test_a_function_is_called_with_the_arguments_once_per_attempt() -> None:
    asked: list[str] = []

    def charge(order: str, cents: int) -> Payment:
        asked.append(order)
        return Payment(id=f"{order}-{cents}")

    assert World({flows.charge: charge}).run(flows.buy, "o1", 5).output == "paid o1-5"
    assert asked == ["o1"]


def test_a_task_may_be_called_itself() -> None:
    assert World({flows.charge: real}).run(flows.buy, "o1", 5).output == "paid real o1"
    assert World(others=real).run(flows.buy, "o1", 5).output == "paid real o1"


def test_a_task_that_takes_longer_than_its_timeout_is_timed_out() -> None:
    run = World({flows.charge: takes(minutes(3), PAID)}).run(flows.buy, "o1", 5)
    assert (run.error, run.ended) == ("States.Timeout", minutes(2))


# -- other people and time -------------------------------------------------------------------------


def test_an_event_is_there_as_soon_as_it_is_waited_for() -> None:
    run = World({"bank.confirmed": True}).run(flows.confirm, "k1")
    assert (run.output, run.ended) == ("settled", timedelta())


def test_an_event_comes_at_its_time_to_the_key_that_waits() -> None:
    world = World()
    world.send("bank.confirmed", False, key="other", at=minutes(5))
    world.send("bank.confirmed", True, key="k1", at=hours(2))
    run = world.run(flows.confirm, "k1")
    assert (run.output, run.ended) == ("settled", hours(2))


def test_an_event_that_came_before_the_wait_is_kept() -> None:
    world = World()
    world.send("bank.confirmed", True, key="k1", at=timedelta())
    assert world.run(flows.sleep_and_confirm, "k1").ended == hours(1)


def test_a_wait_without_an_answer_times_out() -> None:
    run = World().run(flows.confirm, "k1")
    assert (run.output, run.ended) == ("late", hours(3))
    assert World({"bank.confirmed": never}).run(flows.confirm, "k1").output == "late"


def test_a_person_answers_the_question_by_its_title() -> None:
    world = World()
    world.answer("Approve o1?", True, assignee="role:boss", at=hours(5))
    run = world.run(flows.approve, "o1")
    assert (run.output, run.ended) == (True, hours(5))


def test_a_stop_undoes_the_finished_steps() -> None:
    world = World({flows.charge: PAID})
    world.stop(at=minutes(30))
    run = world.run(flows.pay_and_wait, "o1")
    assert (run.status, run.steps[-1], run.ended) == ("ABORTED", "refund", minutes(30))


def test_a_race_is_decided_by_durations() -> None:
    world = World({flows.quick: takes(seconds(9), "quick"), flows.slow: takes(seconds(8), "slow")})
    run = world.run(flows.race, 1)
    assert (run.output, run.ended) == ("slow", seconds(8))


def test_a_block_out_of_time_is_undone_from_the_inside() -> None:
    world = World({flows.charge: PAID, flows.slow: takes(hours(9), "x")})
    run = world.run(flows.bounded, "o1")
    assert run.output == "too late"
    assert run.steps == ["charge", "slow", "refund"]
    assert run.ended == minutes(5)


def test_a_shielded_part_runs_to_its_end() -> None:
    run = World({flows.slow: takes(hours(1), "done")}).run(flows.guarded, 1)
    assert (run.output, run.ended) == ("stopped after the slow one", hours(1))


@pytest.mark.parametrize("number", [0, -1])
def test_a_wait_of_no_time_is_where_a_cancelled_line_ends(number: int) -> None:
    world = World({flows.slow: takes(minutes(10), "done"), flows.quick: "done"})
    world.stop(at=minutes(1))
    run = world.run(flows.guarded_before_no_time, number)
    assert (run.status, run.steps, run.ended) == ("ABORTED", ["slow"], minutes(10))


def test_a_block_in_a_shield_has_its_deadline() -> None:
    run = World({flows.slow: takes(hours(1), "done")}).run(flows.bounded_in_a_shield, 1)
    assert (run.output, run.ended) == ("late", minutes(5))


@pytest.mark.parametrize("outcome", [CardDeclined("no"), PAID])
def test_a_stop_comes_before_whatever_else_happens_at_that_moment(outcome: Any) -> None:
    world = World({flows.charge: takes(seconds(1), outcome)})
    world.stop(at=seconds(1))
    run = world.run(flows.buy, "o1", 5)
    assert (run.status, run.steps) == ("ABORTED", ["charge"])


def test_a_block_in_a_shield_has_its_deadline_also_after_a_stop() -> None:
    world = World({flows.slow: takes(hours(1), "done")})
    world.stop(at=minutes(1))
    run = world.run(flows.cleaned_up_in_time, 1)
    assert (run.status, run.steps, run.ended) == ("ABORTED", ["slow", "notify"], minutes(5))


def test_arguments_that_cannot_be_worked_out_are_not_retried() -> None:
    run = World().run(flows.first_of, [])
    assert (run.error, run.calls, run.ended) == ("IndexError", [], timedelta())


def test_a_race_in_a_shield_ends_with_its_winner() -> None:
    world = World({flows.quick: takes(seconds(1), "q"), flows.slow: takes(hours(1), "s")})
    run = world.run(flows.race_in_a_shield, 1)
    assert (run.output, run.ended) == ("q", seconds(1))


def test_a_child_workflow_runs_on_the_same_clock() -> None:
    run = World({flows.charge: takes(seconds(7), PAID)}).run(flows.parent, "o1")
    assert run.output == "paid p1"
    assert [(call.kind, call.path) for call in run.calls][:2] == [("workflow", ""), ("task", "buy")]


def test_a_child_with_a_scripted_outcome_does_not_run() -> None:
    run = World({flows.buy: takes(seconds(3), "paid p9")}).run(flows.parent, "o1")
    assert (run.output, run.ended, run.unused) == ("paid p9", seconds(3), [])
    assert [call.kind for call in run.calls] == ["workflow"]


@pytest.mark.parametrize("outcome", [real, takes(seconds(3), "reserved o1")])
def test_a_child_is_called_again_by_the_retry_of_the_call(outcome: Any) -> None:
    bank = fails(child_flows.OutOfStock("no"), then=outcome)
    world = World({child_flows.quick: bank, child_flows.reserve: "reserved o1"})
    run = world.run(child_flows.order_all, "o1")
    assert run.output == "reserved o1"
    attempts = run.calls_of(child_flows.quick)
    assert [(call.at, call.attempt) for call in attempts] == [(0, 1), (10, 2)]


def test_a_child_that_is_later_than_its_call_allows_is_undone() -> None:
    run = World({child_flows.reserve: "r1"}).run(child_flows.ship, "o1")
    assert (run.output, run.ended) == ("late", minutes(10) + seconds(10))
    assert run.steps == ["pack", "reserve", "packed", "release"] * 2


def test_a_handler_that_only_raises_again_may_name_the_deadline_around_it() -> None:
    run = World().run(child_flows.remind, "o1")
    assert (run.output, run.ended, run.steps.count("release")) == ("late", minutes(1), 2)


def test_branches_are_distinguished_by_their_paths() -> None:
    run = World({flows.charge: PAID}).run(flows.buy_side_by_side, ["a", "b"])
    assert [call.path for call in run.calls_of(flows.charge)] == ["0", "1"]


@pytest.mark.parametrize("buys", [flows.buy_side_by_side, flows.buy_sixty_at_once])
def test_at_most_forty_items_run_at_the_same_time(buys: Any) -> None:
    world = World({flows.charge: takes(seconds(2), PAID)})
    run = world.run(buys, [f"o{number}" for number in range(41)])
    assert [call.at for call in run.calls_of(flows.charge)] == [0] * 40 + [2]


# -- messages --------------------------------------------------------------------------------------


def test_a_task_without_a_script_is_refused_with_the_way_out() -> None:
    with pytest.raises(ScriptError, match=r"charge\(.*'o1'.*\) was called and is not scripted"):
        World({flows.slow: "x"}).run(flows.buy, "o1", 5)


def test_a_child_that_runs_itself_takes_the_time_of_its_own_steps() -> None:
    with pytest.raises(ScriptError, match="buy is scripted to take 0:00:05, and runs itself"):
        World({flows.buy: takes(seconds(5), real)}).run(flows.parent, "o1")


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(ScriptError, match="charge is scripted to return 7, which does not fit"):
        World({flows.charge: 7}).run(flows.buy, "o1", 5)


def test_a_wait_without_an_end_is_refused() -> None:
    with pytest.raises(ScriptError, match=r"waits for ever: event forever \{'key': 'k1'\}"):
        World().run(flows.wait_for_ever, "k1")


def test_the_output_of_a_failure_names_the_failed_step() -> None:
    run = World({flows.charge: ConnectionError("down")}).run(flows.buy, "o1", 5)
    with pytest.raises(AssertionError, match="did not succeed: FAILED ConnectionError: down"):
        _ = run.output


def test_the_output_of_a_failure_names_unused_events() -> None:
    world = World()
    world.send("bank.confirmde", True, key="k1", at=hours(2))
    with pytest.raises(AssertionError, match=r"not asked for: event bank.confirmde \(sent, key="):
        _ = world.run(flows.sleep_and_confirm, "k1").output


def test_a_scripted_function_sends_for_one_execution_alone() -> None:
    def calls(*_: object, **__: object) -> None:
        world.send("bank.confirmed", True, key="k1", at=hours(1))
        world.send("bank.confirmed", False, key="k2", at=hours(1))

    world = World({flows.notify: calls})
    for _ in range(2):
        run = world.run(flows.notify_and_confirm, "k1")
        assert (run.output, run.ended) == (True, hours(1))
        assert run.unused == ["event bank.confirmed (sent, key='k2')"]


def test_a_scripted_function_sends_not_before_its_task_begins() -> None:
    def calls(text: str) -> None:
        world.send("bank.confirmed", True, key=text, at=seconds(1))

    world = World({flows.notify: takes(hours(2), calls)})
    run = world.run(flows.sleep_notify_and_confirm, "k1")
    assert (run.output, run.ended) == (True, hours(3))


def test_a_function_that_draws_values_is_scripted() -> None:
    world = World({uuid.uuid4: UUID(int=7), random.randint: in_turn(2, 5)})
    run = world.run(flows.draw_twice)
    assert (run.output, run.unused) == ([str(UUID(int=7)), "2", "5"], [])
    failed = World({uuid.uuid4: OSError("no entropy")}).run(flows.draw_twice)
    assert (failed.error, failed.cause) == ("OSError", "no entropy")


def test_only_functions_that_draw_values_are_scripted() -> None:
    with pytest.raises(ScriptError, match=r"a function that draws a value \(uuid.uuid4\)"):
        World({math.ceil: 3})


def test_a_generated_run_of_a_workflow_with_a_key_is_stopped() -> None:
    links = [None, "https://a.example"]
    ended = check_workflow(flows.count_for_ever, examples=10, seed=1, inputs={"link": links})
    assert ended["ABORTED"] > 0
    assert set(ended) <= {"ABORTED", "FAILED"}


def test_a_generated_task_that_never_returns_fails(tmp_path: Path) -> None:
    source = """
from typing import NoReturn
from holdfast import TaskError, task, workflow
class Broken(TaskError): ...
@task
def give_up(text: str) -> NoReturn: raise Broken(text)
@workflow
def flow(text: str) -> str:
    try:
        give_up(text)
    except Broken:
        return "given up"
"""
    with loaded(tmp_path, source) as module:
        ended = check_workflow(module.flow, examples=20, seed=1, stops=False)
        assert set(ended) == {"SUCCEEDED", "FAILED"}


def test_numbers_are_drawn_within_their_bounds() -> None:
    assert check_workflow(flows.within_bounds, examples=60, seed=1, stops=False)["SUCCEEDED"] == 60


def test_a_generated_input_without_a_strategy_is_named() -> None:
    with pytest.raises(ScriptError, match=r"no value can be drawn for link: .*inputs=\{'link': "):
        check_workflow(flows.count_for_ever, examples=50, seed=1)
    with pytest.raises(ScriptError, match="count_for_ever has no parameter lnk"):
        check_workflow(flows.count_for_ever, inputs={"lnk": [None]})


@pytest.mark.parametrize("wait", [timedelta(seconds=1.5), timedelta(days=1_158)])
def test_a_wait_that_the_engine_cannot_keep_fails_in_both_runs(wait: timedelta) -> None:
    run = World().run(flows.sleep_for, wait)
    assert (run.error, run.compiled_error) == ("ValueError", "States.QueryEvaluationError")
    assert "whole seconds, at most 99,999,999" in run.cause


def test_a_child_gets_its_input_as_the_engine_converts_it() -> None:
    run = World({flows.slow: "slow"}).run(flows.number_in, {"n": True})
    assert run.calls_of(flows.slow)[0].arguments == {"number": 1}


def test_a_loop_that_the_script_never_ends_is_refused() -> None:
    with pytest.raises(ScriptError, match=r"not over after 10,000 calls, .*: poll, sleep\."):
        World({flows.poll: "pending"}).run(flows.poll_until_done, "j1")
    with pytest.raises(ScriptError, match=r"not over after 20 calls, .*calls_max=100_000"):
        World({flows.poll: "pending"}, calls_max=20).run(flows.poll_until_done, "j1")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (lambda: takes(5, PAID), r"takes\(…\) takes a duration from 0, as seconds\(5\), and not 5"),  # type: ignore[arg-type]
        (lambda: World().stop(at=-hours(1)), r"stop\(at=…\) takes a duration from 0"),
        (lambda: World().send("paid", 1, at=5), r"send\(at=…\) takes a duration"),  # type: ignore[arg-type]
        (
            lambda: fails(CardDeclined, times=-1),
            r"fails\(.*times=-1.*\) takes an error and numbers",
        ),
        (lambda: fails(7), r"fails\(7, .*\) takes an error"),  # type: ignore[arg-type]
        (lambda: World().run(flows.charge, "o1"), "<task charge> is no workflow"),  # type: ignore[arg-type]
        (
            lambda: check_workflow(flows.buy, examples=0),
            "takes a workflow and at least one example",
        ),
        (lambda: World().run(flows.buy), r"missing a required argument: .*; it is buy\("),  # type: ignore[call-arg]
        (lambda: _buy(lambda cents: PAID), r"does not take its arguments \(.*\): lambda order, c"),
        (lambda: _buy(lambda order, cents: 7), "charge is scripted to return 7"),
        (lambda: _buy(UnicodeDecodeError), r"is scripted by its class, and needs arguments"),
        (lambda: _buy(fails(ConnectionError)), r"attempt 2 of charge is not scripted: .*then=…"),
    ],
)
def test_a_script_that_makes_no_sense_is_refused_with_the_way_out(script: Any, said: str) -> None:
    with pytest.raises(ScriptError, match=said):
        script()


def _buy(charged: Any) -> None:
    World({flows.charge: charged}).run(flows.buy, "o1", 5)


def test_a_script_error_in_a_branch_ends_every_line() -> None:
    with pytest.raises(ScriptError):
        World().run(flows.buy_side_by_side, ["a", "b", "c"])


# -- differences -----------------------------------------------------------------------------------


@contextmanager
def planted(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> Iterator[None]:
    """The compiled machine with a bug in it."""

    def parsed(document: Any) -> Any:
        import json

        return parse.parse_definition(json.loads(json.dumps(document).replace(old, new)))

    definitions.program_of.cache_clear()
    monkeypatch.setattr(definitions, "parse_definition", parsed)
    yield
    definitions.program_of.cache_clear()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"paid ', '"payd ', 'direct:   SUCCEEDED with "paid p1"'),
        ("paid ", "payd ", "compiled: SUCCEEDED"),
        ("$cents", "$cents + 1", "direct:   0 s: task charge {'order': 'o1', 'cents': 5}"),
        ('"TimeoutSeconds": 120', '"TimeoutSeconds": 60', "timeout 60 s"),
    ],
)
def test_a_bug_of_the_compiled_machine_is_shown(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str, said: str
) -> None:
    old, new = (text.replace('"paid', '\\"paid').replace('"payd', '\\"payd') for text in (old, new))
    with (
        planted(monkeypatch, old, new),
        pytest.raises(Difference, match=re.escape(said)),
    ):
        World({flows.charge: PAID}).run(flows.buy, "o1", 5)


def test_generated_worlds_find_a_bug_and_show_the_smallest_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        planted(monkeypatch, "declined: ", "refused: "),
        pytest.raises(Difference, match=r"'charge': .*CardDeclined\('error 1'\)") as found,
    ):
        check_workflow(flows.buy, seed=1)
    assert "check_workflow(buy, seed=1)" in str(found.value)


@pytest.mark.parametrize(
    "flow",
    [flows.buy, flows.pay_and_wait, flows.race, flows.bounded, flows.guarded, flows.parent],
)
def test_generated_worlds_agree(flow: Any) -> None:
    assert check_workflow(flow, examples=30, seed=5).total() >= 30


def test_the_plugin_gives_fixtures_and_loads_nothing_heavy(tmp_path: Any) -> None:
    code = "import sys, holdfast.pytest_plugin as p; print('pydantic' in sys.modules, p.__name__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("False")
