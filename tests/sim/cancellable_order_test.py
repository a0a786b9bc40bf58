"""A customer cancels at any moment, through the real handlers: all is undone, or it has shipped."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.world import CrashAt, Hook, Killed, RandomCrashes, When, no_faults
from statemachines.fates import Fate
from tests.builders import CHANCE
from tests.order_shop import TENANT, OrderShop
from tests.sim.orders_crash_test import an_order
from tests.thorough import some, stride

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
UNDONE = ["refund", "release", "notify"]


class CancellingShop:
    """One order, and the messages of its customer: events and their times."""

    def __init__(self, hook: Hook = no_faults) -> None:
        self._shop = OrderShop(hook, "cancellable_order")
        self.world = self._shop.world

    def run(self, fate: Fate, *said: tuple[str, int, Any]) -> tuple[str, list[str]]:
        """Return the reason in the outcome, and the tasks that succeeded, in order."""
        request = an_order(fate)
        for number, (event, after_ms, data) in enumerate(said):
            detail = {"name": event, "key": request.name, "data": data}
            send = partial(self._send, f"said-{number}", detail)
            self.world.at(self.world.now_ms + after_ms, send)
        ((reason, _),) = self._shop.fulfil([request]).items()
        (history,) = histories(self.world)
        done = [event for event in history.events if event.type == "TaskSucceeded"]
        resources = [str(event.details["resource"]) for event in done]
        return reason, [name.removeprefix("task:") for name in resources]

    def _send(self, event_id: str, detail: dict[str, Any]) -> None:
        for _ in range(10):
            try:
                self.world.call(self._shop.front.bus_event(TENANT, event_id, detail, CHANCE))
            except Killed:
                self.world.kills += 1
            else:
                return
        raise AssertionError("no answer in ten tries")


CANCELLED = ("order.cancelled", {"reason": "changed my mind"})


def cancelled(after_ms: int) -> tuple[str, int, Any]:
    name, data = CANCELLED
    return name, after_ms, data


@pytest.mark.parametrize("after_ms", [1, MINUTE_MS, HOUR_MS])
def test_an_order_cancelled_before_the_bank_confirms_is_undone(after_ms: int) -> None:
    reason, done = CancellingShop().run(Fate.HOURS, cancelled(after_ms))
    assert (reason, done[-3:]) == ("cancelled", UNDONE)


def test_an_order_cancelled_after_it_shipped_comes_back() -> None:
    arrived = ("return.arrived", 9 * DAY_MS, {"is_complete": True})
    reason, done = CancellingShop().run(Fate.HOURS, cancelled(DAY_MS), arrived)
    assert (reason, sorted(done[-3:-1])) == ("returned", ["refund", "restock"])


@pytest.mark.parametrize("fate", [Fate.PLAIN, Fate.HOURS])
def test_whenever_it_is_cancelled_it_is_undone_or_shipped_and_never_half(fate: Fate) -> None:
    """The bank confirms after 5 hours; around every moment at which something happens."""
    moments = [0, 1, 10, 100, 500, 1_000, 2_000, 5_000, 30_000][:: stride(1, 2)]
    for after_ms in [*moments, *(5 * HOUR_MS + moment for moment in moments)]:
        shop = CancellingShop()
        reason, done = shop.run(fate, cancelled(after_ms))
        shipped = "ship" in done
        assert reason == ("not_returned" if shipped else "cancelled"), after_ms
        assert ("refund" in done, "release" in done) == (not shipped, not shipped), after_ms
        assert (check(shop.world), lost(shop.world)) == ([], []), after_ms


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_at_any_effect_changes_nothing(when: When) -> None:
    counting = CrashAt(None, when)
    expected = CancellingShop(counting).run(Fate.HOURS, cancelled(MINUTE_MS))
    assert counting.seen > 50
    for number in some(counting.numbers):
        shop = CancellingShop(CrashAt(number, when))
        assert shop.run(Fate.HOURS, cancelled(MINUTE_MS)) == expected, number
        assert (check(shop.world), lost(shop.world)) == ([], []), number
        assert shop.world.kills == 1


def test_crashes_at_random_undo_it_all_the_same() -> None:
    for seed in some(range(20)):
        print(f"seed {seed}")
        shop = CancellingShop(RandomCrashes(seed, chance=0.03, crashes_max=3))
        reason, done = shop.run(Fate.HOURS, cancelled(HOUR_MS))
        assert (reason, done[-3:]) == ("cancelled", UNDONE)
        assert (check(shop.world), lost(shop.world)) == ([], [])
