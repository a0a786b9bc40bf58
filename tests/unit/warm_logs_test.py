"""Logs that a worker process keeps between deliveries: what they save, when they are not used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from holdfast import limits
from holdfast.errors import HoldfastBug
from holdfast.runtime import messages
from holdfast.runtime.effects import Put, TaskFailed
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.codec import Reader
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.warm_logs import WarmLogs
from holdfast_simulator.invariants import check
from tests.builders import Shop, call, machine, wait_for
from tests.unit.child_kit import Family, call_of
from tests.unit.states_world import Office, states

TWICE = machine(
    {"first": wait_for("paid", "then"), "then": call("add", "second", Arguments={"n": 1})}
    | {"second": wait_for("paid")}
)
FAILING = machine({"wait": wait_for("paid", "no"), "no": {"Type": "Fail", "Error": "Broken"}})


@contextmanager
def folded() -> Iterator[list[int]]:
    """Gives the numbers of the records that loads fold."""
    found: list[int] = []
    record = Reader.record

    def noting(reader: Reader, item: Any) -> Any:
        found.append(int(item["sk"]))
        return record(reader, item)

    with mock.patch.object(Reader, "record", noting):
        yield found


def parked() -> tuple[Shop, str]:
    shop = Shop(TWICE)
    run = shop.start()
    rest(shop)
    return shop, run


def rest(shop: Shop) -> None:
    shop.world.run(until_ms=shop.world.now_ms + 1_000)


def test_a_parent_folds_the_same_for_each_child_however_many_there_are() -> None:
    def folded_of(count: int) -> int:
        one = {"one": call_of("inner", Arguments={"n": "{% $states.input %}"})}
        each = {"Type": "Map", "Items": f"{{% [1..{count}] %}}", "End": True}
        each["ItemProcessor"] = {"StartAt": "one", "States": one}
        inner = machine({"work": call("add", Arguments={"n": "{% $states.input.n %}"})})
        family = Family({"outer": machine({"all": each}), "inner": inner})
        family.start()
        with folded() as found:
            family.world.run(until_ms=family.world.now_ms + 60_000)
        return len(found)

    assert folded_of(60) / 60 <= 1.1 * folded_of(20) / 20


def distributed(count: int, at_once: int) -> dict[str, Any]:
    """Return a machine with a distributed Map, each child one Pass."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    one = {"StartAt": "one", "States": {"one": {"Type": "Pass", "End": True}}}
    each = {"Type": "Map", "ItemProcessor": {"ProcessorConfig": config, **one}}
    items = f"{{% [1..{count}] %}}"
    return states(all={**each, "Items": items, "MaxConcurrency": at_once})


def test_a_child_of_a_distributed_map_costs_the_same_reads_however_many_there_are() -> None:
    def cost_of(count: int) -> tuple[float, float]:
        office = Office()
        office.start(office.create(distributed(count, at_once=30)))
        with folded() as found:
            office.wait(60)
        return office.world.services.usage.read_units / count, len(found) / count

    (few_reads, few_folded), (many_reads, many_folded) = cost_of(30), cost_of(120)
    assert many_reads <= 1.1 * few_reads
    assert many_folded <= few_folded <= 0.1


def test_the_wakes_of_an_earlier_release_that_name_no_child_lead_a_map_to_its_end() -> None:
    office = Office()

    def wake(tenant: str, run: str, key: str, _: int) -> dict[str, Any]:
        return messages.wake_mail(tenant, run, key)

    with mock.patch.object(messages, "wake_child_ended", wake):
        execution = office.start(office.create(distributed(20, at_once=8)))
        office.wait(60)

    assert office.describe(execution)["status"] == "SUCCEEDED"


def test_a_delivery_reads_only_what_it_does_not_know() -> None:
    shop, run = parked()
    with folded() as found:
        shop.send_event()
        rest(shop)
        assert found == []  # no other process has written
        shop.send_event(event_id="e2")
        rest(shop)
        assert found == []
    check(shop.world)
    assert shop.history(run).state.status == "SUCCEEDED"


def test_a_record_of_another_process_is_read() -> None:
    shop, run = parked()
    kept = dict(shop.world.setting.warm_logs._logs)
    shop.send_event()
    rest(shop)
    logs = shop.world.setting.warm_logs._logs
    newest = next(iter(logs.values())).sequence
    logs.clear()
    logs.update(kept)
    with folded() as found:
        shop.send_event(event_id="e2")
        rest(shop)
    assert found == list(range(next(iter(kept.values())).sequence + 1, newest + 1))
    check(shop.world)
    assert shop.history(run).state.status == "SUCCEEDED"


def test_a_log_that_the_table_no_longer_holds_is_not_used() -> None:
    shop, run = parked()
    services = shop.world.services
    partition = next(iter(shop.world.setting.warm_logs._logs))
    before = services.items("executions")
    shop.send_event()
    rest(shop)
    for item in services.items("executions")[len(before) :]:
        services.expire("executions", item)  # as a table that was restored to an earlier time
    log = Log("default", run, "other", "m")
    kept = shop.world.setting.warm_logs.take(partition)
    assert kept is not None
    assert shop.world.call(log.load_newer(kept)) is False


def test_a_damaged_newest_record_is_a_named_error() -> None:
    shop, run = parked()
    kept = shop.world.setting.warm_logs.take(next(iter(shop.world.setting.warm_logs._logs)))
    assert kept is not None

    def damage() -> Any:
        newest = shop.world.services.items("executions")[-1]
        yield Put(tables.EXECUTIONS, {**newest, "ttl": b"\x00"})

    shop.world.call(damage())
    with pytest.raises(HoldfastBug, match="cannot be read"):
        shop.world.call(Log("default", run, "other", "m").load_newer(kept))


def test_an_api_in_the_process_of_the_worker_folds_nothing_of_an_execution_that_ended() -> None:
    ended = WarmLogs(of_ended=True)
    shop = Shop(FAILING)
    shop.world.setting = replace(shop.world.setting, ended_logs=ended)
    elsewhere, shop.front = shop.front, replace(shop.front, ended_logs=ended)
    run = shop.start()
    rest(shop)
    shop.send_event()
    rest(shop)
    with folded() as found:
        first = shop.describe(run)
        assert (shop.describe(run), found) == (first, [])
        shop.front, here = elsewhere, shop.front
        assert shop.describe(run) == first
        assert found == [0, 1]
    assert first["status"] == "FAILED"

    # Another process retries it: the API reads the newer records.
    shop.world.setting = replace(shop.world.setting, ended_logs=None)
    shop.insist(lambda: shop.front.retry("default", run, {}, b"12345678"))
    rest(shop)
    shop.front = here
    again = shop.describe(run)
    shop.front = elsewhere
    assert again == shop.describe(run)
    assert "ExecutionRedriven" in {event.type for event in shop.history(run).events}


def test_the_last_failure_is_described_alike_by_the_process_of_the_worker_and_by_another() -> None:
    failed = TaskFailed("KeyError", "'order-12'", '  File "shop.py", line 8, in ship')
    shop = Shop(machine({"ship": call("ship")}), tasks=lambda _: failed)
    ended = WarmLogs(of_ended=True)
    shop.world.setting = replace(shop.world.setting, ended_logs=ended)
    elsewhere, here = shop.front, replace(shop.front, ended_logs=ended)
    run = shop.start()
    rest(shop)
    expected = {"task": "ship", "error": "KeyError", "cause": "'order-12'"}
    for shop.front in (elsewhere, here):
        assert shop.describe(run)["last_failure"].items() >= expected.items()


def test_a_recovery_reads_the_records_of_its_message() -> None:
    shop, run = parked()
    from holdfast.runtime import messages
    from holdfast.runtime.effects import Message, Send

    with folded() as found:
        shop.world.services.perform(Send((Message(messages.recover("default", run)),)))
        rest(shop)
    assert found[:1] == [0]


def test_a_log_is_not_kept_while_a_record_of_it_is_in_doubt_or_when_it_is_large() -> None:
    shop, run = parked()
    partition = f"default#{run}"
    log = shop.world.setting.warm_logs.take(partition)
    assert log is not None
    kept = WarmLogs()
    kept.keep(log)
    assert kept.take(partition) is log
    assert kept.take(partition) is None  # one delivery has it at a time
    log.is_exact = False
    kept.keep(log)
    assert kept.take(partition) is None
    log.is_exact, log.blob_bytes = True, limits.WARM_LOG_BYTES_MAX
    kept.keep(log)
    assert kept.take(partition) is None


@pytest.mark.parametrize("count", [5, 100])
def test_the_oldest_kept_logs_leave_when_they_take_too_much_memory(count: int) -> None:
    kept = WarmLogs()
    shop, _ = parked()
    log = next(iter(shop.world.setting.warm_logs._logs.values()))
    for number in range(count):
        other = Log("default", str(number), "w", "m")
        other.state, other.is_exact, other.blob_bytes = log.state, True, 500_000
        kept.keep(other)
    assert kept.take("default#0") is None
    assert kept.take(f"default#{count - 1}") is not None
