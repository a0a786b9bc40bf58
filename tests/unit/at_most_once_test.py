"""`@task(at_most_once=True)`: an attempt whose worker was lost fails, and starts no second time."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import (
    Batch,
    BatchJob,
    Lambda,
    Limit,
    Retry,
    StepInterrupted,
    TaskError,
    Worker,
    seconds,
    task,
    wait_for_condition,
    workflow,
)
from holdfast.asl.validation.validate import diagnose
from holdfast.compiler.compile import compile_workflow
from holdfast.errors import WorkflowError
from holdfast.runtime.effects import RunTask, TaskSucceeded
from holdfast.testing import World, in_turn
from holdfast_simulator.invariants import check, lost
from holdfast_simulator.runner import Deployed, play
from holdfast_simulator.scenarios import AttemptOutcome, Scenario
from holdfast_simulator.schedule import WrittenTape
from holdfast_simulator.swarm import Swarm
from holdfast_simulator.world import Killed
from tests.builders import Shop, call, machine


@task(at_most_once=True, retry=Retry(max_attempts=3))
def pay(order: str) -> str:
    return order


@task(at_most_once=True, retry=Retry(max_attempts=3, on=(StepInterrupted,)))
def ask_bank(order: str) -> str:
    return order


@task(at_most_once=True, retry=Retry(max_attempts=3, on=(TaskError,)))
def book(order: str) -> str:
    return order


@task(at_most_once=True)
def ship(order: str) -> str:
    return order


@workflow
def paid(order: str) -> str:
    return pay(order)


@workflow
def asked(order: str) -> str:
    return ask_bank(order)


@workflow
def booked(order: str) -> str:
    return book(order)


@workflow
def shipped(order: str) -> str:
    try:
        return ship(order)
    except StepInterrupted:
        return "look at the parcel"


INTERRUPTED = StepInterrupted("the worker was lost")


@pytest.mark.parametrize(
    ("flow", "called", "attempts"), [(paid, pay, 1), (asked, ask_bank, 2), (booked, book, 1)]
)
def test_only_a_rule_that_names_the_loss_repeats_it(flow: Any, called: Any, attempts: int) -> None:
    run = World({called: in_turn(INTERRUPTED, "done")}).run(flow, "o1")
    assert [call.attempt for call in run.calls_of(called)] == list(range(1, attempts + 1))
    assert run.status == ("SUCCEEDED" if attempts == 2 else "FAILED")


def test_other_errors_are_retried_as_ever() -> None:
    assert World({pay: in_turn(OSError("down"), "done")}).run(paid, "o1").output == "done"


def test_a_workflow_catches_the_loss() -> None:
    assert World({ship: INTERRUPTED}).run(shipped, "o1").output == "look at the parcel"


def test_the_definition_says_so() -> None:
    state = compile_workflow(paid).asl["States"]["pay"]
    assert state["Holdfast"] == {"AtMostOnce": True}
    assert state["Retry"][0] == {"ErrorEquals": ["StepInterrupted"], "MaxAttempts": 0}
    assert len(compile_workflow(asked).asl["States"]["ask_bank"]["Retry"]) == 1


# -- in the engine ---------------------------------------------------------------------------------


def once(name: str, **fields: Any) -> dict[str, Any]:
    return call(name, Holdfast={"AtMostOnce": True}, **fields)


def retried(*errors: str) -> list[dict[str, Any]]:
    return [{"ErrorEquals": list(errors), "MaxAttempts": 2, "IntervalSeconds": 1}]


def test_a_task_that_kills_its_worker_starts_once() -> None:
    started: list[int] = []

    def deadly(effect: RunTask) -> TaskSucceeded:
        started.append(effect.attempt)
        raise Killed

    shop = Shop(machine({"it": once("ship")}), tasks=deadly)
    history = shop.run()

    assert started == [1]
    assert (history.state.status, history.state.error) == ("FAILED", "StepInterrupted")
    assert "ship" in str(history.state.cause)
    assert (check(shop.world), lost(shop.world)) == ([], [])


def test_each_attempt_starts_once_when_the_loss_is_retried() -> None:
    started: list[int] = []

    def deadly(effect: RunTask) -> TaskSucceeded:
        started.append(effect.attempt)
        if effect.attempt < 3:
            raise Killed
        return TaskSucceeded("done")

    shop = Shop(machine({"it": once("ship", Retry=retried("StepInterrupted"))}), tasks=deadly)
    history = shop.run()

    assert started == [1, 2, 3]
    assert history.state.output == "done"
    assert (check(shop.world), lost(shop.world)) == ([], [])


def test_the_worker_extends_the_leases_of_attempts_that_run_or_wait_for_their_turn() -> None:
    """A worker runs 40 attempts at once. Without the extension the sweeper would find the lapsed
    leases, and the attempts would fail.
    """
    items = list(range(90))
    processor = machine({"it": once("slow")})
    definition = machine({"all": {"Type": "Map", "Items": items, "ItemProcessor": processor}})
    slow = {"slow": (AttemptOutcome("done", seconds=270),)}
    scenario = Scenario("slow", "it runs for long", {"main": definition}, tasks=slow)
    result = play(Deployed(scenario), Swarm(safety_ms=10**9), WrittenTape(()))
    assert (set(result.statuses), result.violations) == ({"SUCCEEDED"}, ())


# -- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"runs_on": Worker("gpu")},
        {"runs_on": BatchJob("queue", "job")},
        {"runs_on": Lambda("arn:aws:lambda:eu-west-1:123456789012:function:pay")},
        {"group": "payments"},
        {"limits": [Limit("bank", concurrency=1)]},
    ],
)
def test_where_a_second_start_is_possible_the_option_is_refused(options: dict[str, Any]) -> None:
    def charge(order: str) -> None: ...

    with pytest.raises(WorkflowError) as refused:
        task(at_most_once=True, **options)(charge)
    assert refused.value.code == "HF438"
    assert refused.value.help


def test_a_batch_is_refused() -> None:
    def charge(orders: list[str]) -> list[str]:
        return orders

    with pytest.raises(WorkflowError, match="HF438"):
        task(at_most_once=True, batch=Batch(10))(charge)  # type: ignore[call-overload]


def test_a_polled_task_is_refused() -> None:
    @task(at_most_once=True)
    def arrived(order: str) -> str | None:
        return order or None

    with pytest.raises(WorkflowError, match="HF370"):
        wait_for_condition(arrived, every=seconds(5))


@pytest.mark.parametrize("resource", ["holdfast:pure:x", "holdfast:pool:gpu", "holdfast:poll:x"])
def test_another_resource_cannot_have_the_extension(resource: str) -> None:
    state = {**once("x"), "Resource": resource}
    assert any("AtMostOnce" in one.message for one in diagnose(machine({"it": state})))
