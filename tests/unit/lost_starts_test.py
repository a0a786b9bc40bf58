"""Starts whose message is lost: the sweeper sends them again (R18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.errors import ServiceFault
from holdfast.limits import START_INPUT_BYTES_MAX, START_RESENT_SECONDS_MAX
from holdfast.runtime.driver import run as run_handler
from holdfast.runtime.effects import Effect, Put, PutIfAbsent, TaskSucceeded
from holdfast.runtime.maintenance import lost_starts, quarantine
from holdfast.runtime.pending_starts import FIRST_MS
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.spread import STARTS
from holdfast_simulator.invariants import check
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import Shop, call, chain, machine
from tests.unit.child_kit import Family, call_of
from tests.unit.states_kit import Desk

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def purge(services: Any, queue: str = "starts") -> None:
    """Delete every message, as `aws sqs purge-queue` does."""
    services.queue(queue).messages.clear()


def sweep(services: Any) -> list[Any]:
    """Run one round over the starts; return its errors."""
    found = []
    for shard in range(STARTS.least):
        found += run_handler(lost_starts.sweep(shard, "sweeper"), services.perform)
    return found


def waiting(services: Any, queue: str = "starts") -> list[Mapping[str, Any]]:
    return [received.body for received in services.receive(queue)]


@pytest.mark.parametrize("size", [1, START_INPUT_BYTES_MAX // 2, START_INPUT_BYTES_MAX + 1])
def test_a_start_in_a_purged_queue_begins_a_quarter_of_an_hour_later(size: int) -> None:
    shop = Shop(machine({"a": call("keep")}), tasks=lambda effect: TaskSucceeded(effect.run))
    run = shop.start({"text": "x" * size})
    accepted_ms = shop.world.now_ms
    purge(shop.world.services)
    shop.world.run()

    history = shop.history(run)
    assert history.state.status == "SUCCEEDED"
    assert history.state.input == {"text": "x" * size}
    begun_ms = history.records[0].at_ms
    assert FIRST_MS <= begun_ms - accepted_ms <= FIRST_MS + 2 * MINUTE_MS
    assert shop.world.task_runs.total() == 1
    check(shop.world)


def test_a_start_that_is_lost_again_is_sent_again() -> None:
    shop = Shop(chain(1))
    run = shop.start({"n": 0})
    for _ in range(4):
        purge(shop.world.services)
        shop.world.now_ms += HOUR_MS
        shop.world.sweep()
    shop.world.run()

    assert shop.history(run).state.status == "SUCCEEDED"
    assert shop.world.task_runs.total() == 1


def test_a_start_that_waits_in_the_queue_for_hours_runs_once_and_is_repeated_each_hour() -> None:
    shop = Shop(chain(1))
    shop.start({"n": 0})
    for _ in range(5 * 60):
        shop.world.now_ms += MINUTE_MS
        shop.world.sweep()
    # After 15 minutes, 30 minutes, an hour, and then each hour.
    assert 1 < len(shop.world.services.queue("starts").messages) <= 8
    shop.world.run()

    assert shop.world.task_runs.total() == 1
    check(shop.world)


def test_the_start_of_a_state_machine_is_sent_again_as_it_was() -> None:
    desk = Desk()
    desk.call("StartExecution", stateMachineArn=desk.create(), name="n", input='{"a": 1}')
    (sent,) = waiting(desk.services)
    purge(desk.services)
    desk.clock.advance(FIRST_MS + MINUTE_MS)
    assert sweep(desk.services) == []

    (again,) = waiting(desk.services)
    assert {**again, "of": None, "released": None} == {**sent, "of": None, "released": None}
    # Its worker recovers, and the second message is no round of a dead letter.
    assert (len(again["of"]), again["released"]) == (1, 1)


def test_a_child_whose_start_is_lost_begins_and_its_parent_ends() -> None:
    outer = machine({"it": call_of("inner", Arguments={})})
    inner = machine({"work": call("work", Arguments={})})
    family = Family({"outer": outer, "inner": inner}, lambda _: TaskSucceeded({}))
    is_purged = False

    def purge_once(world: SimulatorWorld, effect: Effect, when: When) -> None:
        nonlocal is_purged
        messages = world.services.queue("work").messages
        if messages and not is_purged:
            is_purged = True
            messages.clear()

    family.world.hook = purge_once
    assert family.run().state.status == "SUCCEEDED"
    assert is_purged


def test_a_child_whose_worker_crashed_before_its_report_and_whose_queue_is_purged_reports() -> None:
    outer = machine({"it": call_of("inner", Arguments={})})
    inner = machine({"work": call("work", Arguments={})})
    family = Family({"outer": outer, "inner": inner}, lambda _: TaskSucceeded({}))
    crashes = 0

    def crash_and_purge(world: SimulatorWorld, effect: Effect, when: When) -> None:
        nonlocal crashes
        is_report = isinstance(effect, PutIfAbsent) and str(effect.item["sk"]).startswith("t#")
        if is_report and when == "before" and not crashes:
            crashes += 1
            world.services.queue("work").messages.clear()
            raise Killed

    family.world.hook = crash_and_purge
    assert family.run().state.status == "SUCCEEDED"
    assert crashes == 1


def test_a_quarantined_start_is_left_to_its_operator() -> None:
    shop = Shop(chain(1))
    run = shop.start({"n": 0})
    (body,) = waiting(shop.world.services)
    shop.world.call(quarantine.put(body, ("a", "b", "c"), shop.world.now_ms))
    purge(shop.world.services)
    shop.world.now_ms += FIRST_MS + MINUTE_MS
    assert sweep(shop.world.services) == []
    assert waiting(shop.world.services) == []

    held = shop.world.call(quarantine.find(shop.tenant, run))
    shop.world.call(quarantine.drop(held))
    shop.world.now_ms += HOUR_MS
    sweep(shop.world.services)
    assert len(waiting(shop.world.services)) == 1


def test_a_start_whose_check_failed_is_checked_by_the_next_sweep() -> None:
    shop = Shop(chain(1))
    run = shop.start({"n": 0})
    purge(shop.world.services)
    shop.world.now_ms += FIRST_MS + MINUTE_MS
    services = shop.world.services
    real = services.perform

    def throttled(effect: Effect) -> Any:
        if getattr(effect, "pk", "") == f"{shop.tenant}#{run}":
            raise ServiceFault("HF321", "slow down", retry="later")
        return real(effect)

    services.perform = throttled  # type: ignore[method-assign]
    assert [error.code for error in sweep(services)] == ["HF321"]
    services.perform = real  # type: ignore[method-assign]
    assert waiting(services) == []
    assert sweep(services) == []
    assert len(waiting(services)) == 1


def rows_of(services: Any) -> list[Any]:
    return [item for item in services.items("mail") if str(item["pk"]).startswith("~start#")]


def test_a_sweeper_that_crashes_goes_on_at_the_page_in_which_it_crashed() -> None:
    shop = Shop(chain(1))
    shop.start({"n": 0})
    services = shop.world.services
    (row,) = rows_of(services)
    for number in range(250):
        sort = f"{shop.world.now_ms - 1:015d}#{shop.tenant}#{number:04d}"
        services.perform(
            Put("mail", {**row, "sk": sort, "run": keys.mint_run("t", 0, b"x" * 8, b"k")})
        )
    real, puts = services.perform, list[str]()

    def crashes(effect: Effect) -> Any:
        result = real(effect)
        if isinstance(effect, Put):
            puts.append(str(effect.item.get("to")))
            if len(puts) == 2:
                raise Killed
        return result

    shop.world.now_ms += FIRST_MS + MINUTE_MS
    services.perform = crashes  # type: ignore[method-assign]
    with pytest.raises(Killed):
        sweep(services)
    assert [place[-4:] for place in puts] == ["0099", "0199"]
    services.perform = real  # type: ignore[method-assign]
    assert sweep(services) == []
    assert len(waiting(services)) == 2  # the first message, and the lost start behind the 250 rows


def test_a_row_without_its_fields_is_refused_and_keeps_its_ttl() -> None:
    shop = Shop(chain(1))
    shop.start({"n": 0})
    services = shop.world.services
    (row,) = rows_of(services)
    damaged = {name: row[name] for name in ("pk", "sk", "f", "ttl")}
    services.perform(Put("mail", damaged))
    shop.world.now_ms += FIRST_MS + MINUTE_MS
    assert [error.code for error in sweep(services)] == ["HF900"]
    again = max(rows_of(services), key=lambda item: str(item["sk"]))
    assert again == {**damaged, "sk": again["sk"]}
    assert again["sk"] > damaged["sk"]


def test_a_start_of_70_days_ago_is_read_no_more_even_when_its_log_cannot_be() -> None:
    shop = Shop(chain(1))
    shop.start({"n": 0})
    services = shop.world.services
    (row,) = rows_of(services)
    services.perform(Put("mail", {**row, "body": "{"}))
    shop.world.now_ms += 1_000 * START_RESENT_SECONDS_MAX + MINUTE_MS
    assert sweep(services) == []
    assert len(rows_of(services)) == 1


def test_a_row_that_cannot_be_read_hides_no_other() -> None:
    shop = Shop(chain(1))
    run = shop.start({"n": 0})
    purge(shop.world.services)
    services = shop.world.services
    (row,) = (item for item in services.items("mail") if str(item["pk"]).startswith("~start#"))
    earlier = f"{shop.world.now_ms - 1:015d}#{shop.tenant}#{run}"
    services.perform(Put("mail", {**row, "sk": earlier, "body": "{"}))
    shop.world.now_ms += FIRST_MS + MINUTE_MS
    assert [error.code for error in sweep(services)] == ["HF900"]
    assert len(waiting(services)) == 1
    assert sweep(services) == []


def test_a_start_repeated_during_its_first_task_runs_the_task_once() -> None:
    shop = Shop(machine({"a": call("keep")}), tasks=lambda effect: TaskSucceeded(effect.run))
    run = shop.start({"n": 1}, name="order-1")
    shop.world.now_ms += 1_000
    assert shop.start({"n": 1}, name="order-1") == run

    # Both messages would be delivered at once, and two workers would run the first task.
    assert [body["run"] for body in waiting(shop.world.services)] == [run]
    assert not waiting(shop.world.services, "work")


def test_a_start_repeated_after_a_crash_before_its_message_begins_after_half_a_minute() -> None:
    shop = Shop(machine({"a": call("keep")}), tasks=lambda effect: TaskSucceeded(effect.run))
    shop.start({"n": 1}, name="order-1")
    accepted_ms = shop.world.now_ms
    purge(shop.world.services)  # as if the first request had crashed before it sent the message
    shop.world.now_ms += 1_000
    run = shop.start({"n": 1}, name="order-1")
    shop.world.run()

    begun_ms = shop.history(run).records[0].at_ms
    assert 30_000 <= begun_ms - accepted_ms <= 2 * MINUTE_MS
    assert shop.world.task_runs.total() == 1
    check(shop.world)
