"""An order that is stopped before it ships: finished work is undone, in spite of crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.runtime.effects import TaskSucceeded
from holdfast_simulator.invariants import StoredHistory, check, histories, lost
from holdfast_simulator.world import START_MS, CrashAt, Hook, Killed, RandomCrashes, When, no_faults
from statemachines.fates import Fate
from tests.builders import CHANCE, Shop
from tests.order_shop import TENANT, OrderShop
from tests.sim.orders_crash_test import an_order
from tests.thorough import some
from tests.unit.dsl_kit import loaded

REASON = {"error": "Shop.Closed", "cause": "the shop closes"}
LOOK_MS = 10_000


class ClosingShop:
    """One order with a slow bank. It is stopped as soon as it waits for the bank."""

    def __init__(self, hook: Hook = no_faults) -> None:
        self._shop = OrderShop(hook)
        self.world = self._shop.world

    def run(self) -> tuple[Any, ...]:
        """Return status, error, cause, and the tasks that ran after the stop, in order."""
        self.world.at(self.world.now_ms + LOOK_MS, self._stop)
        self._shop.fulfil([an_order(Fate.LATE)])
        history = self.history
        state = history.state
        return state.status, state.error, state.cause, _undone(history)

    @property
    def history(self) -> StoredHistory:
        (history,) = histories(self.world)
        return history

    def _stop(self) -> None:
        found = histories(self.world)
        waits = [frame.position for history in found for frame in history.state.frames.values()]
        if waits != ["wait for bank.confirmed"]:
            self.world.at(self.world.now_ms + LOOK_MS, self._stop)
            return
        for _ in range(10):
            try:
                self.world.call(self._shop.front.stop(TENANT, found[0].run, REASON, CHANCE))
            except Killed:
                self.world.kills += 1
            else:
                return
        raise AssertionError("no answer in ten tries")


def _undone(history: StoredHistory) -> list[str]:
    types = [event.type for event in history.events]
    after = history.events[types.index("Stopping") :]
    return [event.details["resource"] for event in after if event.type == "TaskSucceeded"]


EXPECTED = ("ABORTED", "Shop.Closed", "the shop closes", ["task:refund", "task:release"])


def test_an_order_stopped_before_it_ships_is_refunded_and_released() -> None:
    shop = ClosingShop()
    assert shop.run() == EXPECTED
    assert shop.history.events[-1].type == "ExecutionAborted"
    assert (check(shop.world), lost(shop.world)) == ([], [])


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_at_any_effect_changes_nothing(when: When) -> None:
    counting = CrashAt(None, when)
    ClosingShop(counting).run()
    assert counting.seen > 50
    for number in some(counting.numbers):
        shop = ClosingShop(CrashAt(number, when))
        assert shop.run() == EXPECTED, number
        assert (check(shop.world), lost(shop.world)) == ([], []), number
        assert shop.world.kills == 1


def test_crashes_at_random_undo_it_all_the_same() -> None:
    """Up to three: a task that takes four workers with it fails, and is not asked for again."""
    for seed in some(range(20)):
        print(f"seed {seed}")
        shop = ClosingShop(RandomCrashes(seed, chance=0.03, crashes_max=3))
        assert shop.run() == EXPECTED
        assert (check(shop.world), lost(shop.world)) == ([], [])


# -- a compensation, and then a `finally` ----------------------------------------------------------

RENTED = """
from __future__ import annotations
from holdfast import TaskError, compensating, seconds, sleep, task, workflow

class NoFuel(TaskError): ...

@task
def give_back(car: int) -> None: ...
@task
def say(text: str) -> None: ...

@workflow
def rent(car: int) -> None:
    try:
        try:
            with compensating() as undo:
                undo(give_back, car)
                raise NoFuel("empty")
        except NoFuel:
            sleep(seconds(60))
    finally:
        say("closed")
"""


def test_a_step_in_a_finally_is_no_step_of_a_compensation_that_is_over(tmp_path: Path) -> None:
    with loaded(tmp_path, RENTED) as module:
        shop = Shop(compile_workflow(module.rent).asl, tasks=lambda _: TaskSucceeded(None))
    run = shop.start({"car": 1})
    shop.world.run(until_ms=START_MS + 10_000)
    shop.stop(run)
    shop.world.run()
    assert _undone(shop.history(run)) == ["task:say"]
    assert check(shop.world) == []
