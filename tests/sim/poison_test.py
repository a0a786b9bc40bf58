"""A message that always crashes its worker ends or is quarantined by name, and no other execution
waits for it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.core import steps
from holdfast.core.decision import Decision
from holdfast.core.state import Frame
from holdfast.resources import METRIC_EXECUTIONS_QUARANTINED, STARTS, WORK
from holdfast.runtime import inbox, messages
from holdfast.runtime.effects import (
    Effect,
    Item,
    Message,
    Put,
    QueueName,
    RunTask,
    Send,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
)
from holdfast.runtime.maintenance import dead_letters, doctor, quarantine
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.spread import Spread
from holdfast.runtime.worker import recovery
from holdfast_simulator.invariants import check, histories
from holdfast_simulator.world import START_MS, Killed, SimulatorWorld, When, no_faults
from tests.builders import Machine, Shop, call, machine
from tests.sim.doctor_kit import findings, settle
from tests.sim.regressions_test import expire_daily
from tests.thorough import worlds
from tests.unit.child_kit import Family, call_of

HOUR_MS = 3_600_000
DAY_SECONDS = 86_400


# -- a task ----------------------------------------------------------------------------------------


def killing(effect: RunTask) -> TaskResult:
    if effect.name == "poison":
        raise Killed
    return TaskSucceeded(effect.arguments)


@pytest.mark.parametrize(("catches", "status"), [(False, "FAILED"), (True, "SUCCEEDED")])
def test_a_task_that_always_kills_its_worker_fails_by_its_fourth_owner(
    catches: bool, status: str
) -> None:
    caught = [{"ErrorEquals": ["Holdfast.WorkerLost"], "Next": "fine"}] if catches else []
    states = {"it": call("poison", "fine", Catch=caught), "fine": call("fine")}
    shop = Shop(machine(states), tasks=killing)  # type: ignore[arg-type]
    state = shop.run().state
    assert state.status == status
    assert state.error == (None if catches else "Holdfast.WorkerLost")
    assert shop.world.kills == 5  # once before there was a record, then four owners
    assert check(shop.world) == []


class Company(SimulatorWorld):
    """Workers take ten messages at once, and the others in a batch with the poison crash with it.

    The worst case: no other task is over before the poison crashes the worker.
    """

    poison = ""
    is_doomed = False

    def _deliver_visible(self) -> bool:
        sizes: list[tuple[QueueName, int]] = [("work", WORK.batch_size), ("single", 1)]
        sizes += [("starts", STARTS.batch_size)]
        for queue, size in sizes:
            batch = self.services.receive(queue, size)
            self.is_doomed = any(received.body["run"] == self.poison for received in batch)
            for received in batch:
                self.deliver(received, queue)
            if batch:
                return True
        return False


POISON = "poison-1"


def company(executions: int) -> tuple[Shop, str]:
    """One poison among so many good ones, all started in the same second."""

    def together(effect: RunTask) -> TaskResult:
        assert isinstance(shop.world, Company)
        if shop.world.is_doomed or effect.arguments["name"] == POISON:
            raise Killed
        return TaskSucceeded(effect.arguments)

    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 3}]
    arguments = {"name": "{% $states.input.name %}"}
    is_poison = {"Condition": f"{{% $states.input.name = '{POISON}' %}}", "Next": "poison"}
    states = {
        "which": {"Type": "Choice", "Choices": [is_poison], "Default": "step 0"},
        "poison": call("work", Arguments=arguments, Retry=retry),
    } | {
        f"step {n}": call("work", f"step {n + 1}" if n < 2 else None, Arguments=arguments)
        for n in range(3)
    }
    shop = Shop(machine(states), tasks=together)  # type: ignore[arg-type]
    shop.world = Company(shop.world.setting, together)
    runs = []
    for number, name in enumerate([POISON, *(f"good-{n}" for n in range(executions))]):
        request = {"workflow": "flow", "input": {"name": name}, "name": name}
        start = shop.front.start(shop.tenant, request, number.to_bytes(8, "big"))
        runs.append(str(shop.world.call(start)["execution"]))
    shop.world.poison = runs[0]
    return shop, runs[0]


def problems_of_company(executions: int) -> list[str]:
    shop, poison = company(executions)
    shop.world.run()
    found = check(shop.world)
    for history in histories(shop.world):
        state = history.state
        if history.run == poison and state.error != "Holdfast.WorkerLost":
            found.append(f"the poison ended {state.status} {state.error}")
        if history.run != poison and state.status != "SUCCEEDED":
            found.append(f"{state.name} ended {state.status} {state.error}")
        minutes = ((state.stopped_ms or shop.world.now_ms) - START_MS) / 60_000
        if history.run != poison and minutes > 10:
            found.append(f"{state.name} took {minutes:.0f} minutes")
    return found


@pytest.mark.parametrize("executions", [9, 100])
def test_good_executions_finish_while_one_poison_goes_round(executions: int) -> None:
    assert problems_of_company(executions) == []


def test_without_a_batch_of_its_own_the_poison_takes_the_others_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stays(*_: Any) -> Any:
        return False
        yield

    monkeypatch.setattr(recovery, "goes_alone", stays)
    assert problems_of_company(9) != []


# -- executions that cannot be evaluated -----------------------------------------------------------


class Bomb:
    """The state «bomb» crashes every worker that evaluates it, until it is repaired."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.is_armed = True
        evaluate = steps.run

        def run(decision: Decision, frame: Frame) -> None:
            if self.is_armed and frame.position == "bomb":
                raise Killed
            evaluate(decision, frame)

        patch.setattr(steps, "run", run)


@pytest.fixture
def bomb(monkeypatch: pytest.MonkeyPatch) -> Bomb:
    return Bomb(monkeypatch)


BOMB: Machine = {"Type": "Pass", "End": True}
AT_ONCE = machine({"bomb": BOMB})
LATER = machine({"nap": {"Type": "Wait", "Seconds": 60, "Next": "bomb"}, "bomb": BOMB})
BOTH = pytest.mark.parametrize("definition", [AT_ONCE, LATER], ids=["at its start", "later"])


def quarantined(definition: Machine) -> tuple[Shop, str]:
    shop = Shop(definition)
    run = shop.start({"secret": "hunter2"})
    settle(shop.world, DAY_SECONDS)
    return shop, run


def listed(shop: Shop, **wanted: Any) -> list[Any]:
    asked = {"workflow": None, "status": None, **wanted}
    return list(shop.world.call(shop.front.executions(shop.tenant, asked))["executions"])


@BOTH
def test_an_execution_that_crashes_every_worker_is_quarantined_and_listed(
    definition: Machine, bomb: Bomb
) -> None:
    shop, run = quarantined(definition)
    shown = shop.describe(run)
    assert (shown["status"], shown["waits"][0]["kind"]) == ("RUNNING", "quarantined")
    assert "failed in every delivery" in shown["waits"][0]["reason"]
    for wanted in ({}, {"status": "RUNNING"}, {"workflow": "flow"}):
        (row,) = listed(shop, **wanted)
        assert (row["execution"], row["waits_for"]) == (run, "quarantined")
        assert (row["name"], row["workflow"]) == ("order-1", "flow")
    assert listed(shop, status="FAILED") == []
    assert shop.world.services.metrics[METRIC_EXECUTIONS_QUARANTINED] >= 1
    (found,) = findings(shop.world, names=("flow",))
    assert (found["execution"], found["reason"]) == (run, "QUARANTINED")
    assert "hunter2" not in str([row, found])


@BOTH
def test_an_execution_in_quarantine_is_left_alone(definition: Machine, bomb: Bomb) -> None:
    shop, _ = quarantined(definition)
    kills = shop.world.kills
    assert kills < 1_000
    settle(shop.world, worlds(30) * DAY_SECONDS)
    assert shop.world.kills == kills


@pytest.mark.slow
def test_without_a_quarantine_it_would_go_round_for_ever(
    bomb: Bomb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "DEAD_LETTER_ROUNDS_MAX", 10**6)
    shop, _ = quarantined(AT_ONCE)
    kills = shop.world.kills
    settle(shop.world, DAY_SECONDS)
    assert shop.world.kills > kills + 100


@BOTH
def test_a_mended_execution_is_sent_again_by_a_repair_and_ends_well(
    definition: Machine, bomb: Bomb
) -> None:
    shop, run = quarantined(definition)
    bomb.is_armed = False
    (found,) = findings(shop.world, names=("flow",), is_repairing=True)
    assert found["repair"] == "its message is sent again, alone in its batch"
    shop.world.run()
    assert shop.history(run).state.status == "SUCCEEDED"
    assert findings(shop.world, names=("flow",)) == []
    assert [row["status"] for row in listed(shop)] == ["SUCCEEDED"]
    assert quarantine_items(shop.world) == []


@BOTH
def test_an_execution_repaired_and_not_mended_comes_back_into_quarantine(
    definition: Machine, bomb: Bomb
) -> None:
    shop, run = quarantined(definition)
    findings(shop.world, names=("flow",), is_repairing=True)
    settle(shop.world, DAY_SECONDS)
    (found,) = findings(shop.world, names=("flow",))
    assert (found["execution"], found["reason"]) == (run, "QUARANTINED")


@BOTH
def test_a_stop_ends_a_quarantined_execution(definition: Machine, bomb: Bomb) -> None:
    shop, run = quarantined(definition)
    shop.stop(run)
    shop.world.run()
    assert shop.history(run).state.status == "ABORTED"
    assert findings(shop.world, names=("flow",)) == []
    assert [row["status"] for row in listed(shop)] == ["ABORTED"]
    assert check(shop.world) == []


def test_a_stop_ends_a_quarantined_execution_also_if_its_wake_becomes_a_dead_letter(
    bomb: Bomb,
) -> None:
    shop, run = quarantined(AT_ONCE)
    shop.stop(run)
    (wake,) = shop.world.services.receive("work")
    shop.world.services.delete(wake.receipt)
    shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(wake.body, wake.message_id)))
    shop.world.run()
    assert shop.history(run).state.status == "ABORTED"
    assert quarantine_items(shop.world) == []


def test_a_wake_that_names_a_stop_that_is_not_there_leaves_it_in_quarantine(bomb: Bomb) -> None:
    shop, run = quarantined(AT_ONCE)
    wake = messages.wake_mail(shop.tenant, run, keys.control("1"))
    shop.world.services.perform(Send((Message(wake),)))
    settle(shop.world)
    assert [item["sk"] for item in quarantine_items(shop.world)] == [
        keys.execution(shop.tenant, run)
    ]


@pytest.mark.parametrize("minutes", [1, 70, 170])
def test_a_stop_before_the_quarantine_is_not_forgotten(minutes: int, bomb: Bomb) -> None:
    """The worker of the start evaluates before it reads the inbox, and crashes."""
    shop = Shop(AT_ONCE)
    run = shop.start({"secret": "hunter2"})
    settle(shop.world, minutes * 60)
    assert quarantine_items(shop.world) == []
    shop.stop(run)
    settle(shop.world, DAY_SECONDS)
    assert shop.history(run).state.status == "ABORTED"
    # A start that was sent again may stop the execution before the first message is a dead letter.
    assert shop.world.call(quarantine.resting(shop.tenant)) == []


def test_a_stop_while_a_start_is_put_into_quarantine_is_seen_by_one_of_the_two(bomb: Bomb) -> None:
    shop = Shop(AT_ONCE)
    run = shop.start({"secret": "hunter2"})

    def stop_before_it_is_put(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, Put) and effect.item["pk"] == keys.QUARANTINE:
            world.hook = no_faults
            shop.stop(run)
            (wake,) = world.services.receive("work")
            assert world.deliver(wake, "work")

    shop.world.hook = stop_before_it_is_put
    settle(shop.world, DAY_SECONDS)
    assert shop.history(run).state.status == "ABORTED"
    assert quarantine_items(shop.world) == []


def test_a_called_workflow_in_quarantine_ends_with_its_parent(bomb: Bomb) -> None:
    outer = machine({"call": call_of("inner", Arguments={})})
    family = Family({"outer": outer, "inner": AT_ONCE})
    run = family.start()
    family.settle(DAY_SECONDS)
    assert len(quarantine_items(family.world)) == 1
    family.stop(run)
    family.settle(HOUR_MS / 1_000)
    assert family.statuses() == ("ABORTED", ["ABORTED"])
    assert quarantine_items(family.world) == []
    assert family.is_sound()


def quarantine_items(world: SimulatorWorld) -> list[Any]:
    return [item for item in world.services.items("mail") if item["pk"] == keys.QUARANTINE]


def test_a_start_in_quarantine_is_not_replaced_by_a_later_failure(bomb: Bomb) -> None:
    shop, run = quarantined(AT_ONCE)
    later = messages.recover(shop.tenant, run, ("a", "b"))
    shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(later, "c")))
    (held,) = shop.world.call(quarantine.of_tenant(shop.tenant))
    assert held.is_start
    assert held.letters == ("a", "b", "c")


def test_an_execution_that_has_moved_since_leaves_the_quarantine() -> None:
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 60, "End": True}}))
    run = shop.start()
    settle(shop.world, 1)
    letter = messages.recover(shop.tenant, run, ("a", "b"))
    shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(letter, "c")))
    assert [wait["kind"] for wait in shop.describe(run)["waits"]] == ["quarantined", "timer"]
    shop.world.run()
    assert shop.describe(run)["waits"] == []
    assert shop.history(run).state.status == "SUCCEEDED"


def test_a_start_whose_log_may_be_gone_by_ttl_is_not_begun_again(bomb: Bomb) -> None:
    shop, run = quarantined(AT_ONCE)
    bomb.is_armed = False
    assert shop.start({"secret": "hunter2"}) == run  # No worker waits for a repair
    shop.world.run()
    assert shop.history(run).state.status == "SUCCEEDED"
    shop.world.now_ms += 91 * DAY_SECONDS * 1_000
    before = shop.world.services.items("executions")
    (found,) = findings(shop.world, names=("flow",), is_repairing=True)
    assert (found["execution"], found["reason"]) == (run, "QUARANTINED")
    assert "repair" not in found
    assert "holdfast stop" in found["advice"]
    settle(shop.world, DAY_SECONDS)
    assert shop.world.services.items("executions") == before


def test_a_start_whose_name_is_free_again_is_not_sent_again(bomb: Bomb) -> None:
    """A name is kept for 75 days; a later start under it makes another execution."""
    shop, first = quarantined(AT_ONCE)
    expire_daily(shop.world, 80)
    shop.world.run(until_ms=START_MS + 80 * DAY_SECONDS * 1_000)
    bomb.is_armed = False
    second = shop.start({"secret": "hunter2"})
    assert second != first
    settle(shop.world, DAY_SECONDS)
    (found,) = findings(shop.world, names=("flow",), is_repairing=True)
    assert (found["execution"], found["reason"]) == (first, "QUARANTINED")
    assert "repair" not in found
    assert "its name is kept for it no longer" in found["advice"]
    settle(shop.world, DAY_SECONDS)
    assert [row["execution"] for row in listed(shop, status="SUCCEEDED")] == [second]


@pytest.mark.slow
def test_a_start_whose_name_expires_during_its_release_stays_in_quarantine(bomb: Bomb) -> None:
    shop, run = quarantined(AT_ONCE)
    held = shop.world.call(quarantine.find(shop.tenant, run))
    assert shop.world.call(quarantine.refusal(held, shop.world.now_ms)) is None
    expire_daily(shop.world, 80)
    shop.world.run(until_ms=START_MS + 80 * DAY_SECONDS * 1_000)
    shop.world.call(quarantine.release(held))
    assert shop.world.services.queue("single").messages == {}
    assert shop.world.call(quarantine.find(shop.tenant, run)) == held


def test_a_start_without_a_name_is_sent_again(bomb: Bomb) -> None:
    shop = Shop(AT_ONCE)
    run = shop.start({"secret": "hunter2"}, name=None)
    settle(shop.world, DAY_SECONDS)
    assert [item["sk"] for item in quarantine_items(shop.world)] == [
        keys.execution(shop.tenant, run)
    ]
    bomb.is_armed = False
    findings(shop.world, names=("flow",), is_repairing=True)
    settle(shop.world)
    assert shop.history(run).state.status == "SUCCEEDED"


@pytest.mark.slow
def test_a_start_that_is_sent_again_keeps_its_name_from_then_on(bomb: Bomb) -> None:
    nap = {"Type": "Wait", "Seconds": 100 * DAY_SECONDS, "End": True}
    shop, first = quarantined(machine({"bomb": {"Type": "Pass", "Next": "nap"}, "nap": nap}))
    expire_daily(shop.world, 100)
    shop.world.run(until_ms=START_MS + 70 * DAY_SECONDS * 1_000)
    bomb.is_armed = False
    (found,) = findings(shop.world, names=("flow",), is_repairing=True)
    assert found["repair"] == "its message is sent again, alone in its batch"
    shop.world.run(until_ms=START_MS + 90 * DAY_SECONDS * 1_000)
    assert shop.describe(first)["status"] == "RUNNING"
    assert shop.start({"secret": "hunter2"}) == first


# -- a redrive -------------------------------------------------------------------------------------


def redriven(bomb: Bomb) -> tuple[Shop, str]:
    """Its only task has failed; then the worker of its redrive crashes."""
    results = iter([TaskFailed("Broken", None)])
    shop = Shop(machine({"bomb": call("ship")}), tasks=lambda _: next(results, TaskSucceeded(1)))
    bomb.is_armed = False
    run = shop.start()
    shop.world.run()
    assert shop.history(run).state.status == "FAILED"
    bomb.is_armed = True
    control_id = inbox.control_id(shop.history(run).state, shop.world.now_ms, bytes(8))
    fields = {"kind": inbox.REDRIVE}
    item = inbox.control_item(shop.tenant, run, control_id, shop.world.now_ms, fields)
    shop.world.services.perform(Put("mail", item))
    wake = messages.wake_mail(shop.tenant, run, keys.control(control_id))
    shop.world.services.perform(Send((Message(wake),)))
    settle(shop.world, DAY_SECONDS)
    return shop, run


def test_a_redrive_that_kills_its_workers_is_in_quarantine_where_everybody_sees_it(
    bomb: Bomb,
) -> None:
    shop, run = redriven(bomb)
    shown = shop.describe(run)
    assert (shown["status"], [wait["kind"] for wait in shown["waits"]]) == (
        "FAILED",
        ["quarantined"],
    )
    assert "its redrive failed in every delivery" in shown["waits"][0]["reason"]
    for status in (None, "FAILED"):
        (row,) = listed(shop, status=status)
        assert (row["status"], row["waits_for"]) == ("FAILED", "quarantined")
    assert listed(shop, status="RUNNING") == []
    (found,) = findings(shop.world, names=("flow",))
    assert (found["execution"], found["reason"]) == (run, "QUARANTINED")
    assert "holdfast stop" not in found["advice"]


def test_a_redrive_in_quarantine_is_repaired_alone_in_its_batch(bomb: Bomb) -> None:
    shop, run = redriven(bomb)
    findings(shop.world, names=("flow",), is_repairing=True)
    queue = shop.world.services.queue("work")
    assert (queue.messages, quarantine_items(shop.world)) == ({}, [])
    settle(shop.world, DAY_SECONDS)  # it was not mended
    (found,) = shop.world.call(
        doctor.report_one(shop.tenant, Spread(), run, None, is_repairing=True)
    )["findings"]
    assert found["reason"] == "QUARANTINED"
    bomb.is_armed = False
    settle(shop.world, DAY_SECONDS)
    assert shop.history(run).state.status == "SUCCEEDED"
    assert findings(shop.world, names=("flow",)) == []


def test_a_report_does_not_delete_ended_quarantine_rows() -> None:
    """A caller that may only read may lack the right to delete."""
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 60, "End": True}}))
    run = shop.start()
    settle(shop.world, 1)
    letter = messages.recover(shop.tenant, run, ("a", "b"))
    shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(letter, "c")))
    shop.world.run()
    assert findings(shop.world, names=("flow",)) == []
    assert len(quarantine_items(shop.world)) == 1
    findings(shop.world, names=("flow",), is_repairing=True)
    assert quarantine_items(shop.world) == []


# -- retention -------------------------------------------------------------------------------------


def test_a_start_that_has_begun_is_not_kept_as_one() -> None:
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 60, "End": True}}))
    run = shop.start()
    (start,) = (stored.text for stored in shop.world.services.queue("starts").messages.values())
    settle(shop.world, 1)
    letter = {**json.loads(start), "of": ["a", "b"]}
    shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(letter, "c")))
    (held,) = shop.world.call(quarantine.of_tenant(shop.tenant))
    assert (held.run, held.is_start) == (run, False)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"f": 99}, "NEWER_FORMAT"),
        ({"body": "{"}, "UNREADABLE_LOG"),
        ({"at": ""}, "UNREADABLE_LOG"),
    ],
)
def test_an_item_of_quarantine_that_cannot_be_read_is_said_and_hides_nothing(
    fields: Item, reason: str, bomb: Bomb
) -> None:
    shop, run = quarantined(AT_ONCE)
    (item,) = quarantine_items(shop.world)
    shop.world.services.perform(Put("mail", {**item, **fields}))
    shop.world.now_ms += 1_000
    other = shop.start({"secret": ""}, name="order-2")
    settle(shop.world, DAY_SECONDS)
    assert [row["execution"] for row in listed(shop)] == [other]
    found = {row["execution"]: row["reason"] for row in findings(shop.world, names=("flow",))}
    assert found == {run: reason, other: "QUARANTINED"}


@pytest.mark.slow
def test_an_execution_in_quarantine_for_half_a_year_outlives_its_records(bomb: Bomb) -> None:
    shop, run = quarantined(LATER)
    expire_daily(shop.world, 180)
    shop.world.run(until_ms=START_MS + 180 * DAY_SECONDS * 1_000)
    (found,) = findings(shop.world, names=("flow",))
    assert (found["execution"], found["reason"]) == (run, "QUARANTINED")

    bomb.is_armed = False
    findings(shop.world, names=("flow",), is_repairing=True)
    settle(shop.world, 60)
    assert shop.describe(run)["status"] == "SUCCEEDED"
