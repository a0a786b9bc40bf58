"""Bulk operations: each selected execution gets its command once, whatever crashes."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pytest

from holdfast.runtime.commands import once
from holdfast.runtime.effects import Clock, Effect, RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.gates.scopes import ALL
from holdfast.runtime.worker import bulk_pages
from holdfast_simulator.flow import START_MS, Faults, FlowWorld, Work
from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import CHANCE, Shop, call, machine
from tests.sim.scope_pauses_test import MINUTE_MS, drill, pause, ran
from tests.thorough import IS_THOROUGH, stride
from tests.unit.pausing_test import settle

RETRY = {
    "operation": "retry",
    "filters": {"workflow": "flow", "error": "BankDown"},
    "reason": "the bank is back",
    "by": "kim",
}


def start(world: FlowWorld, **more: Any) -> str:
    told = world.call(world.front.bulk("default", {**RETRY, **more}, b"bulkbulk"))
    world._poll()
    return str(told["execution"])


def described(world: FlowWorld, run: str) -> Any:
    return world.call(world.front.describe("default", run))


# -- an outage -------------------------------------------------------------------------------------


def test_after_an_outage_one_bulk_retry_completes_all_orders() -> None:
    orders = 300 if IS_THOROUGH else 120
    world, bank = drill(seed=6)
    ran(world, [Work(10_000 + 10_000 * number) for number in range(orders)], minutes=61)
    assert bank.calls == {("reserve", "done"): orders, ("charge", "failed"): orders}
    assert world.open_runs() == []

    counted = world.call(world.front.bulk("default", {**RETRY, "dry_run": True}, b""))
    assert (counted["matching"], len(counted["sample"])) == (orders, 5)
    run = start(world)
    world.run(world.now_ms + 33 * orders)  # a third of them
    shown = described(world, run)
    assert shown["status"] == "RUNNING"
    assert 0 < shown["published"]["progress"]["done"] < orders

    world.run(START_MS + 70 * MINUTE_MS)
    shown = described(world, run)
    assert (shown["status"], shown["output"]) == ("SUCCEEDED", {"done": orders, "refused": 0})
    assert {described(world, one)["status"] for one in world.works} == {"SUCCEEDED"}
    assert bank.calls == {
        ("reserve", "done"): orders,
        ("charge", "failed"): orders,
        ("charge", "done"): orders,
        ("ship", "done"): orders,
    }


def test_a_pause_of_all_does_not_hold_a_bulk() -> None:
    world, _ = drill(seed=7)
    pause(world, ALL, 0)
    ran(world, [Work(20_000 + 1_000 * number) for number in range(5)], minutes=1)
    assert len(world.open_runs()) == 5
    run = start(world, operation="stop", filters={"workflow": "flow"}, fields={"now": True})
    world.run(world.now_ms + MINUTE_MS)
    assert described(world, run)["output"] == {"done": 5, "refused": 0}
    assert world.open_runs() == []


@pytest.mark.parametrize("seed", [1, 2])
def test_with_faults_each_order_is_retried_once(seed: int) -> None:
    """The bank stays down, so a second retry of an order would call it again."""
    world, bank = drill(seed=seed)
    bank.until_ms = 10**12
    ran(world, [Work(1_000 * number) for number in range(60)], minutes=2)
    began_ms = world.now_ms
    world.faults = Faults(0.03, end_ms=began_ms + 1_800_000 - START_MS, skew_ms=400, duplicates=0.1)
    run = start(world, rate=4)
    world.run(began_ms + 120 * MINUTE_MS)

    assert world.errors == []
    assert described(world, run)["output"] == {"done": 60, "refused": 0}
    assert {described(world, one)["retries"] for one in world.works} == {1}


# -- a crash at each effect ------------------------------------------------------------------------


class DownBank:
    """After the retry it serves the first order; the other one fails again."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.is_back = False

    def __call__(self, effect: RunTask) -> TaskSucceeded | TaskFailed:
        self.calls[effect.name] += 1
        is_served = self.is_back and effect.run_name == "o0"
        if effect.name == "charge" and not is_served:
            return TaskFailed("BankDown", "no answer")
        return TaskSucceeded(1)


def crashed(step: int) -> bool:
    """Retry two orders; the `step`th effect of the bulk's workers kills its process, before or
    after it. Return False when there are fewer effects.
    """
    left, is_armed = step // 2, False
    wanted: When = "after" if step % 2 else "before"

    def hook(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        nonlocal left
        if is_armed and when == wanted and not isinstance(effect, Clock):
            left -= 1
            if left == -1:
                raise Killed

    bank = DownBank()
    shop = Shop(
        machine({"reserve": call("reserve", "charge"), "charge": call("charge")}), bank, hook
    )
    for number in range(2):
        order = {"workflow": "flow", "input": {}, "name": f"o{number}"}
        chance = bytes([number]) * 8
        shop.insist(lambda: shop.front.start("default", order, chance))  # noqa: B023
    settle(shop)
    request: dict[str, Any] = {**RETRY, "rate": 100, "name": "once"}
    bank.is_back = is_armed = True
    run = shop.insist(lambda: shop.front.bulk("default", request, CHANCE))["execution"]
    settle(shop, 1_800)
    assert (check(shop.world), lost(shop.world)) == ([], [])
    assert shop.describe(run)["output"] == {"done": 2, "refused": 0}, step
    orders = [one.state for one in histories(shop.world) if one.run != run]
    assert [order.redrives for order in orders] == [1, 1], step
    assert bank.calls["reserve"] == 2, step
    return left < 0


def test_a_crash_anywhere_gives_each_command_once() -> None:
    # A crash after one effect and a crash before the next leave the same behind: crash before and
    # after every second effect; in the quick run, every ninth.
    distance = 2 * stride(2, 9)
    steps = next(step for step in count() if step % distance < 2 and not crashed(step))
    assert steps > 60


# -- planted ---------------------------------------------------------------------------------------


def test_a_command_with_a_new_id_each_time_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_pages, "once", lambda command, _moment: command)
    with pytest.raises(AssertionError):
        test_a_crash_anywhere_gives_each_command_once()


def test_an_id_that_moves_past_what_was_applied_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "_require_same_id", lambda _effect, _moment: None)
    with pytest.raises(AssertionError):
        test_a_crash_anywhere_gives_each_command_once()


def test_a_repeated_command_that_counts_as_refused_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_pages, "once", once._fixed)
    with pytest.raises(AssertionError):
        test_a_crash_anywhere_gives_each_command_once()


def test_a_page_that_is_chosen_again_after_a_crash_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The commands are given in the step that chooses the page, before its commit."""
    choose, act = bulk_pages._select, bulk_pages._act

    def choose_and_act(known: Any, state: Any, tenant: str, given: Any) -> Any:
        page = yield from choose(known, state, tenant, given)
        yield from act(known, (tenant, state.run, state.started_ms), {**given, **page})
        return page

    monkeypatch.setattr(bulk_pages, "_select", choose_and_act)
    monkeypatch.setattr(bulk_pages, "_act", _counting_only)
    with pytest.raises(AssertionError):
        test_a_crash_anywhere_gives_each_command_once()


def _counting_only(_known: Any, _place: Any, given: Any) -> Any:
    yield from ()
    done = len(given["executions"])
    return {"done": done, "refused": 0, "outcomes": {}, "pause": 1}
