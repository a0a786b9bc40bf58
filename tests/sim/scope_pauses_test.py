"""Pauses of a task, a workflow and the stack: nothing they cover begins, and all of it in the end.

With many hosts, whose memories of the pauses are up to five seconds old, and with faults.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from holdfast.limits import LIMIT_SETTINGS_MS, RESUME_PER_SECOND
from holdfast.runtime.effects import Begin, TaskFailed, TaskResult, TaskSucceeded
from holdfast.runtime.gates.memory import GateMemory
from holdfast.runtime.gates.permits import Permits
from holdfast.runtime.gates.rules import LimitRule, LimitUse, scope_rule
from holdfast.runtime.gates.scopes import ALL, Scope
from holdfast.runtime.storage import keys
from holdfast_simulator.flow import START_MS, Faults, FlowWorld, Work, machine

BANK = Scope("task", "charge")
FLOW = Scope("workflow", "flow")
SEEN_MS = LIMIT_SETTINGS_MS + 1_000
MINUTE_MS = 60_000


def world_of(*tasks: str, seed: int = 1, **options: Any) -> FlowWorld:
    return FlowWorld(dict.fromkeys(tasks, ()), machine(tasks, 20), seed=seed, **options)


def pause(world: FlowWorld, scope: Scope, at_ms: int, until_ms: int = 0) -> None:
    rule = scope_rule(scope.gate)
    end_ms = START_MS + until_ms if until_ms else 0
    changed = {"is_paused": True, "until_ms": end_ms, "reason": "outage", "by": "kim"}
    world.change(rule, at_ms, **changed)


def resume(world: FlowWorld, scope: Scope, at_ms: int) -> None:
    changed = {"is_paused": False, "until_ms": 0, "reason": "over", "by": "kim"}
    world.change(scope_rule(scope.gate), at_ms, **changed)


def ran(world: FlowWorld, works: list[Work], minutes: float) -> FlowWorld:
    for number, work in enumerate(works):
        world.start(work, f"o{number}")
    world.run(START_MS + int(minutes * MINUTE_MS))
    assert world.errors == []
    return world


def starts(world: FlowWorld, task: str) -> list[int]:
    begun = (one.began for one in world.task_runs)
    return sorted(one.at_ms - START_MS for one in begun if one.task == task)


def begun_between(world: FlowWorld, task: str, since_ms: int, until_ms: int) -> int:
    return sum(since_ms < at_ms < until_ms for at_ms in starts(world, task))


def test_a_paused_task_does_not_begin_and_other_tasks_do() -> None:
    world = world_of("reserve", "charge", "ship")
    pause(world, BANK, 0)
    resume(world, BANK, 600_000)
    works = [Work(20_000 + 1_000 * number) for number in range(40)]
    ran(world, works, minutes=15)

    assert begun_between(world, "charge", SEEN_MS, 600_000) == 0
    assert begun_between(world, "reserve", SEEN_MS, 600_000) == 40
    assert world.open_runs() == []
    assert Counter(one.began.task for one in world.task_runs) == dict.fromkeys(
        ("reserve", "charge", "ship"), 40
    )


def test_a_resume_lets_the_queue_in_at_a_bounded_rate() -> None:
    world = world_of("charge")
    pause(world, BANK, 0)
    resume(world, BANK, 120_000)
    ran(world, [Work(10_000 + number) for number in range(250)], minutes=5)
    begun = starts(world, "charge")
    assert len(begun) == 250
    assert begun[0] >= 120_000
    # The wakes of one second come together, up to two seconds ahead of their turn.
    for first, last in zip(begun, begun[RESUME_PER_SECOND * 3 :], strict=False):
        assert last - first >= 1_500
    assert begun[-1] - begun[0] >= 1_000 * (250 / RESUME_PER_SECOND - 2)


@pytest.mark.parametrize("scope", [FLOW, ALL], ids=str)
def test_a_paused_workflow_begins_no_execution_and_no_task(scope: Scope) -> None:
    world = world_of("charge", "ship")
    pause(world, scope, 30_000)
    resume(world, scope, 300_000)
    works = [Work(28_000 + 500 * number) for number in range(30)]
    ran(world, works, minutes=10)
    for task in ("charge", "ship"):
        assert begun_between(world, task, 30_000 + SEEN_MS, 300_000) == 0
    assert world.open_runs() == []
    assert len(world.task_runs) == 60


def test_a_pause_with_an_end_is_over_by_itself() -> None:
    world = world_of("charge")
    pause(world, BANK, 0, until_ms=2_000_000)
    ran(world, [Work(10_000) for _ in range(5)], minutes=40)
    begun = starts(world, "charge")
    assert len(begun) == 5
    assert begun[0] >= 2_000_000
    assert begun[-1] <= 2_020_000


def test_an_attempt_that_waits_at_a_limit_is_held_by_the_pause_and_gives_its_place_back() -> None:
    ledger = LimitUse(LimitRule("ledger", concurrency=2))
    uses = {"charge": (ledger,), "ship": (ledger,)}
    world = FlowWorld(uses, machine(("charge", "ship"), 20), seed=1)
    pause(world, BANK, 12_000)
    resume(world, BANK, 240_000)
    ran(world, [Work(10_000, seconds=3) for _ in range(12)], minutes=0.5)
    (gate,) = world.stored(keys.gate("ledger#-.0"))
    assert gate["n"] == 0

    world.run(START_MS + 12 * MINUTE_MS)
    assert begun_between(world, "charge", 12_000 + SEEN_MS, 240_000) == 0
    assert world.open_runs() == []
    assert len(world.task_runs) == 24


def test_an_execution_that_a_pause_held_takes_the_limit_of_its_workflow_afterwards() -> None:
    running = (LimitUse(LimitRule("onboarding", concurrency=2)),)
    world = world_of("charge", running=running)
    pause(world, FLOW, 0)
    resume(world, FLOW, 60_000)
    ran(world, [Work(10_000, seconds=10) for _ in range(8)], minutes=8)
    assert world.open_runs() == []
    begun = starts(world, "charge")
    assert all(later - earlier >= 9_000 for earlier, later in zip(begun, begun[2:], strict=False))


@pytest.mark.parametrize("seed", [3, 4])
def test_with_faults_nothing_begins_in_the_pause_and_all_ends_after_it(seed: int) -> None:
    faults = Faults(0.02, end_ms=500_000, skew_ms=400, duplicates=0.1, late=0.1)
    world = world_of("reserve", "charge", seed=seed, faults=faults)
    pause(world, BANK, 20_000)
    resume(world, BANK, 400_000)
    ran(world, [Work(1_000 * number) for number in range(60)], minutes=60)
    # A worker that was frozen after its look begins what it had decided on: 200 s at most.
    assert begun_between(world, "charge", 20_000 + SEEN_MS + 200_000, 400_000) == 0
    assert world.open_runs() == []


# -- an outage -------------------------------------------------------------------------------------


class Bank:
    """`charge` fails until the end of the outage; every call is counted."""

    def __init__(self, world: FlowWorld, until_ms: int) -> None:
        self.world, self.until_ms = world, until_ms
        self.calls: Counter[tuple[str, str]] = Counter()
        world.act = self.act

    def act(self, _work: Work, begin: Begin) -> TaskResult:
        task = begin.effect
        is_down = task.name == "charge" and self.world.now_ms < START_MS + self.until_ms
        self.calls[task.name, "failed" if is_down else "done"] += 1
        return TaskFailed("BankDown", "no answer") if is_down else TaskSucceeded("done")


def drill(**options: Any) -> tuple[FlowWorld, Bank]:
    tasks = ("reserve", "charge", "ship")
    world = FlowWorld(dict.fromkeys(tasks, ()), machine(tasks, 20, retry=False), **options)
    return world, Bank(world, until_ms=3_600_000)


@pytest.mark.slow
def test_in_an_outage_a_pause_by_task_holds_300_orders_and_none_fails() -> None:
    world, bank = drill(seed=5)
    pause(world, BANK, 0)
    resume(world, BANK, 3_700_000)
    ran(world, [Work(10_000 + 10_000 * number) for number in range(300)], minutes=60)
    assert bank.calls == {("reserve", "done"): 300}
    assert len(world.open_runs()) == 300

    world.run(START_MS + 65 * MINUTE_MS)
    assert world.open_runs() == []
    assert bank.calls == {(task, "done"): 300 for task in ("reserve", "charge", "ship")}


# -- planted ---------------------------------------------------------------------------------------


def test_a_worker_that_never_looks_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = GateMemory.look

    def look(memory: GateMemory, now_ms: int) -> Any:
        if memory._looked_ms is None:
            yield from real(memory, now_ms)

    monkeypatch.setattr(GateMemory, "look", look)
    with pytest.raises(AssertionError):
        test_a_paused_workflow_begins_no_execution_and_no_task(FLOW)


def test_a_permit_that_a_held_attempt_keeps_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Permits.hold_back

    def hold_back(permits: Permits, attempt: Any, workflow: str, now_ms: int) -> Any:
        permits.granted.pop((attempt.entry, attempt.attempt), None)
        return (yield from real(permits, attempt, workflow, now_ms))

    monkeypatch.setattr(Permits, "hold_back", hold_back)
    with pytest.raises(AssertionError):
        test_an_attempt_that_waits_at_a_limit_is_held_by_the_pause_and_gives_its_place_back()
