"""The archive of a stack: no record expires before its execution is stored, whatever crashes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.errors import HoldfastError, ServiceFault
from holdfast.limits import ARCHIVE_AFTER_SECONDS, RECORD_RETENTION_SECONDS
from holdfast.runtime.effects import (
    Delete,
    Effect,
    Item,
    Put,
    PutArchive,
    RunTask,
    TaskFailed,
    Update,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.worker import archiving
from holdfast_simulator.invariants import check
from holdfast_simulator.world import (
    START_MS,
    CrashAt,
    Hook,
    Killed,
    SimulatorWorld,
    When,
    no_faults,
)
from tests.builders import Shop, add, chain, machine, wait_for
from tests.thorough import some

DAY_MS = 86_400_000
BROKEN_UNTIL_MS = START_MS + 2 * 3_600_000


def of_execution(item: Item) -> str:
    return str(item["pk"]).partition("#")[2]


def shop_of(definition: dict[str, Any], hook: Hook = no_faults, tasks: Any = add) -> Shop:
    shop = Shop(definition, tasks, hook)
    shop.world.setting = replace(shop.world.setting, archives=True)
    return shop


def lines(world: SimulatorWorld) -> dict[str, Any]:
    return {key: json.loads(gzip.decompress(data)) for key, data in world.services.archive.items()}


def archive_rows(world: SimulatorWorld) -> list[Item]:
    return [item for item in world.services.items(tables.MAIL) if is_archive_row(item)]


def is_archive_row(item: Item) -> bool:
    return str(item["pk"]).startswith("~archive#")


def expire(world: SimulatorWorld) -> None:
    """Delete every record whose TTL has passed."""
    for item in world.services.items(tables.EXECUTIONS):
        if 1_000 * int(item.get("ttl", 1 << 40)) <= world.now_ms:
            world.services.perform(Delete(tables.EXECUTIONS, str(item["pk"]), item["sk"]))  # type: ignore[arg-type]


def unarchived_losses(world: SimulatorWorld) -> list[str]:
    """Return the records that TTL may delete and whose execution is not in the archive."""
    kept = {key.rpartition("/")[2].partition("-")[0] for key in world.services.archive}
    return [
        f"record {item['sk']!r} of {of_execution(item)}"
        for item in world.services.items(tables.EXECUTIONS)
        if "ttl" in item and of_execution(item) not in kept
    ]


def test_an_hour_after_its_end_an_execution_is_a_line_and_its_records_have_their_ttl() -> None:
    shop = shop_of(chain(3))
    run = shop.start({"n": 1})
    shop.world.run(until_ms=START_MS + 60_000)
    records = shop.world.services.items(tables.EXECUTIONS)
    assert records
    assert not any("ttl" in item for item in records)
    before = shop.world.call(shop.front.history("default", run))["events"]
    shop.world.run()
    assert shop.world.now_ms - START_MS == 1_000 * ARCHIVE_AFTER_SECONDS
    [(key, line)] = lines(shop.world).items()
    assert key == keys.archive_key("default", run, len(records) - 1)
    assert key.startswith("default/day=2027-01-15/")
    assert (line["status"], json.loads(line["output"])) == ("SUCCEEDED", {"n": 4})
    assert json.loads(line["history"]) == before
    ended_ms = int(records[-1]["at"])
    for item in shop.world.services.items(tables.EXECUTIONS):
        assert int(item["ttl"]) == ended_ms // 1_000 + RECORD_RETENTION_SECONDS
    assert archive_rows(shop.world) == []
    assert check(shop.world) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_whatever_crashes_no_record_expires_before_its_execution_is_archived(when: When) -> None:
    counted = CrashAt(None, when)
    archived(counted)
    for number in some(counted.numbers):
        world = archived(CrashAt(number, when))
        assert world.kills == 1
        assert archive_rows(world) == []


def archived(hook: CrashAt) -> SimulatorWorld:
    """Run an execution that waits, ends, and is archived; look for losses before each effect."""
    late: list[str] = []

    def watching(world: SimulatorWorld, effect: Effect, when: When) -> None:
        late.extend(unarchived_losses(world))
        hook(world, effect, when)

    shop = shop_of(machine({"wait": wait_for("paid")}), watching)
    shop.start()
    shop.world.at(START_MS + 60_000, shop.send_event)
    shop.world.run()
    assert late == []
    assert [line["status"] for line in lines(shop.world).values()] == ["SUCCEEDED"]
    assert all("ttl" in item for item in shop.world.services.items(tables.EXECUTIONS))
    return shop.world


def test_an_end_whose_follow_ups_the_sweeper_carries_out_is_archived() -> None:
    """The worker of the end crashes, and a concurrent delivery deletes its message."""

    def crash(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if world.kills == 0 and isinstance(effect, Put) and is_archive_row(effect.item):
            world.services.queue("work").messages.clear()
            raise Killed

    shop = shop_of(machine({"wait": wait_for("paid")}), crash)
    shop.start()
    shop.world.at(START_MS + 60_000, shop.send_event)
    shop.world.run()
    assert shop.world.kills == 1
    assert [line["status"] for line in lines(shop.world).values()] == ["SUCCEEDED"]
    assert archive_rows(shop.world) == []


def test_a_ttl_that_comes_before_the_put_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archiving._archive

    def expiring_first(*arguments: Any) -> Generator[Effect, Any, None]:
        held: list[Effect] = []
        handler = archive(*arguments)
        answer: Any = None
        while True:
            try:
                effect = handler.send(answer)
            except StopIteration:
                return
            if isinstance(effect, PutArchive):
                held.append(effect)
                answer = None
                continue
            answer = yield effect
            if isinstance(effect, Update) and held:
                yield held.pop()

    monkeypatch.setattr(archiving, "_archive", expiring_first)
    with pytest.raises(AssertionError):
        archived(CrashAt(None, "before"))


def test_the_whole_history_of_an_execution_that_was_open_for_a_year_is_kept() -> None:
    flow = machine({"first": wait_for("paid", "second"), "second": wait_for("signed")})
    shop = shop_of(flow)
    run = shop.start()
    for day in range(0, 480, 20):
        shop.world.at(START_MS + day * DAY_MS, lambda: expire(shop.world))
    shop.world.at(START_MS + DAY_MS, shop.send_event)
    shop.world.at(START_MS + 300 * DAY_MS, lambda: shop.send_event("signed", event_id="e2"))
    shop.world.run(until_ms=START_MS + 481 * DAY_MS)
    assert shop.world.services.items(tables.EXECUTIONS) == []
    [line] = lines(shop.world).values()
    events = [event["type"] for event in json.loads(line["history"])]
    assert (events[0], events[-1]) == ("ExecutionStarted", "ExecutionSucceeded")
    shown = shop.world.call(shop.front.describe("default", run))
    assert (shown["status"], shown["execution"]) == ("SUCCEEDED", run)
    assert shown["archived"] == next(iter(shop.world.services.archive))
    history = shop.world.call(shop.front.history("default", run))["events"]
    assert history == json.loads(line["history"])


def test_the_price_of_an_archived_execution_of_ten_steps() -> None:
    """docs/how-to/export.md says these numbers."""
    used = []
    for archives in (False, True):
        shop = shop_of(chain(10))
        shop.world.setting = replace(shop.world.setting, archives=archives)
        shop.start({"n": 1})
        shop.world.run(until_ms=START_MS + DAY_MS)
        shop.world.now_ms = START_MS + DAY_MS
        shop.world.sweep()  # the sweeper's own place in the rows of starts is not of the archive
        used.append(shop.world.services.usage)
    without, archived = used
    records = len(shop.world.services.items(tables.EXECUTIONS))
    assert archived.write_units - without.write_units == records + 2
    assert archived.s3_puts - without.s3_puts == 1


def test_a_retry_after_the_archive_makes_a_second_line() -> None:
    outcomes: list[Any] = [TaskFailed("Broken", None), None]

    def work(effect: RunTask) -> Any:
        return outcomes.pop(0) or add(effect)

    shop = shop_of(chain(1), tasks=work)
    run = shop.start({"n": 1})
    shop.world.run()
    shop.insist(lambda: shop.front.retry("default", run, {"reason": "fixed"}, b"01234567"))
    shop.world.run()
    assert sorted(line["status"] for line in lines(shop.world).values()) == ["FAILED", "SUCCEEDED"]
    shown = json.loads(gzip.decompress(max(shop.world.services.archive.items())[1]))
    assert shown["status"] == "SUCCEEDED"
    assert all("ttl" in item for item in shop.world.services.items(tables.EXECUTIONS))


def test_the_history_of_an_execution_that_was_retried_after_months_is_whole() -> None:
    outcomes: list[Any] = [TaskFailed("Broken", None), TaskFailed("Broken", None), None]
    shop = shop_of(chain(1), tasks=lambda effect: outcomes.pop(0) or add(effect))
    run = shop.start({"n": 1})
    for day in range(0, 400, 20):
        shop.world.at(START_MS + day * DAY_MS, lambda: expire(shop.world))

    def retry() -> None:
        shop.insist(lambda: shop.front.retry("default", run, {"reason": "fixed"}, b"01234567"))

    shop.world.at(START_MS + 80 * DAY_MS, retry)
    shop.world.at(START_MS + 160 * DAY_MS, retry)
    shop.world.run(until_ms=START_MS + 400 * DAY_MS)
    assert shop.world.services.items(tables.EXECUTIONS) == []
    newest = json.loads(max(lines(shop.world).items())[1]["history"])
    assert newest[0]["type"] == "ExecutionRedriven"
    events = shop.world.call(shop.front.history("default", run))["events"]
    numbers = [event["record"] for event in events]
    assert events[0]["type"] == "ExecutionStarted"
    assert numbers == sorted(numbers)
    assert {*numbers} == {*range(numbers[-1] + 1)}
    assert [event["type"] for event in events].count("ExecutionRedriven") == 2
    assert events[-len(newest) :] == newest


def test_without_the_bucket_nothing_expires_and_the_error_is_told() -> None:
    def broken(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if isinstance(effect, PutArchive) and when == "before" and world.now_ms < BROKEN_UNTIL_MS:
            raise ServiceFault("HF322", "put_object was denied", retry="later")

    shop = shop_of(chain(1), broken)
    shop.start({"n": 1})
    shop.world.run(until_ms=BROKEN_UNTIL_MS - 60_000)
    assert not any("ttl" in item for item in shop.world.services.items(tables.EXECUTIONS))
    assert {fault.code for fault in shop.world.faults if isinstance(fault, HoldfastError)} == {
        "HF322"
    }
    shop.world.run()
    assert len(lines(shop.world)) == 1
    assert archive_rows(shop.world) == []
