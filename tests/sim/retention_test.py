"""The visible data of an execution from its start until its last item is deleted, while TTL
deletes.

DynamoDB deletes expired items up to two days late, and in any order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import pytest

from holdfast.core import advance
from holdfast.errors import HoldfastBug, RequestError, ServiceFault
from holdfast.limits import ENDED_RETENTION_SECONDS, NAME_RETENTION_SECONDS, RECORD_AGING_SECONDS
from holdfast.runtime.effects import Delete, Effect, PutIfAbsent, Unlist
from holdfast.runtime.storage import keys
from holdfast_simulator.world import START_MS, Killed, SimulatorWorld, When
from tests.builders import Machine, Shop, call, machine, wait_for
from tests.sim.doctor_kit import findings
from tests.sim.poison_test import Bomb
from tests.sim.redrive_test import EXPECTED, Repair

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
DAYS = 140
NAME = "order-1"
INPUT = {"n": 1, "note": "x" * 100}
SHOWN_DAYS = ENDED_RETENTION_SECONDS // 86_400


def flow(**wait: Any) -> Machine:
    return machine(
        {
            "wait": wait_for("paid", "work", **wait),
            "work": call("add", Arguments={"n": "{% $states.context.Execution.Input.n %}"}),
        }
    )


class Ttl:
    """Delete expired items each day; `late` ones may stay for two days more."""

    def __init__(self, world: SimulatorWorld, seed: int | None) -> None:
        self._world = world
        self._draws = None if seed is None else random.Random(seed)

    def expire(self) -> None:
        world = self._world
        for table in ("executions", "mail"):
            for item in world.services.items(table):
                over_ms = world.now_ms - 1_000 * int(item.get("ttl", 1 << 40))
                if over_ms > 0 and self._goes(over_ms):
                    world.services.perform(Delete(table, str(item["pk"]), item["sk"]))  # type: ignore[arg-type]

    def _goes(self, over_ms: int) -> bool:
        return self._draws is None or over_ms > 2 * DAY_MS or self._draws.random() < 0.4


@dataclass
class Seen:
    """The view of people on one day; None: there is no such execution.

    `started` is the result of a start with its name and input, None once the name has gone.
    """

    day: int
    shown: Any
    history: Any
    listed: list[str]
    started: str | None


@dataclass
class Watcher:
    shop: Shop
    run: str
    seen: list[Seen] = field(default_factory=list)

    def look(self) -> None:
        front, world = self.shop.front, self.shop.world
        rows = world.call(front.executions("default", {}))["executions"]
        seen = Seen(
            day=(world.now_ms - START_MS) // DAY_MS,
            shown=self._asked(lambda: front.describe("default", self.run)),
            history=self._asked(lambda: front.history("default", self.run)),
            listed=[row["status"] for row in rows if row["execution"] == self.run],
            started=None,
        )
        if all(before.started == self.run for before in self.seen):
            seen.started = self.shop.start(INPUT, NAME)
        self.seen.append(seen)

    def _asked(self, ask: Any) -> Any:
        try:
            return self.shop.world.call(ask())
        except RequestError as error:
            assert error.code == "HF207", error
            return None


def watched(ended_day: int, *, seed: int | None, by: str = "event") -> Watcher:
    """140 days of an execution that ends on the given one: by an event, or its time-out."""
    ended_seconds = ended_day * 86_400 + 7_200
    late = {
        "TimeoutSeconds": ended_seconds,
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "work"}],
    }
    shop = Shop(flow() if by == "event" else flow(**late))
    watcher = Watcher(shop, shop.start(INPUT, NAME))
    ttl = Ttl(shop.world, seed)
    for day in range(DAYS + 1):
        shop.world.at(START_MS + day * DAY_MS + HOUR_MS, ttl.expire)
        shop.world.at(START_MS + day * DAY_MS + 12 * HOUR_MS, watcher.look)
    if by == "event":
        shop.world.at(START_MS + ended_seconds * 1_000, shop.send_event)
    shop.world.run(until_ms=START_MS + (DAYS + 1) * DAY_MS)
    assert [seen.day for seen in watcher.seen] == list(range(DAYS + 1))
    return watcher


def is_right(seen: Seen, ended_day: int, run: str) -> bool:
    statuses: list[str | None]
    if seen.day < ended_day:
        expected, statuses = ["RUNNING"], ["RUNNING"]
    elif seen.day < ended_day + SHOWN_DAYS:
        expected, statuses = ["SUCCEEDED"], ["SUCCEEDED"]
    else:
        expected, statuses = [], ["SUCCEEDED", None]
    status = None if seen.shown is None else seen.shown["status"]
    has_history = seen.history is not None and bool(seen.history["events"])
    return (
        seen.listed == expected
        and status in statuses
        and (status != "SUCCEEDED" or seen.shown["output"] == {"n": 2})
        and has_history == (status is not None)
        and (status is not None or seen.started != run)
    )


ENDS = [
    pytest.param(40, 7, "event"),
    *[
        pytest.param(ended_day, seed, by, marks=pytest.mark.slow)
        for ended_day in (0, 1, 2, 13, 40, 44, 46, 89, 91)
        for seed, by in ((None, "event"), (7, "event"), (8, "time-out"))
    ],
]


@pytest.mark.parametrize(("ended_day", "seed", "by"), ENDS)
def test_every_day_all_that_is_seen_of_an_execution_agrees(
    ended_day: int, seed: int | None, by: str
) -> None:
    print(f"seed {seed}")
    watcher = watched(ended_day, seed=seed, by=by)

    assert [seen for seen in watcher.seen if not is_right(seen, ended_day, watcher.run)] == []
    assert watcher.shop.world.faults == []
    runs = watcher.shop.world.task_runs
    assert sum(count for (run, _, _), count in runs.items() if run == watcher.run) == 1


def test_a_name_goes_before_the_log_that_it_names_though_ttl_is_late() -> None:
    ttl_late_seconds = 2 * 86_400

    assert NAME_RETENTION_SECONDS + ttl_late_seconds < ENDED_RETENTION_SECONDS


def test_the_rest_of_an_ended_log_without_a_snapshot_neither_runs_nor_is_said_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An older release wrote it: its name and its last record outlive its first one."""
    monkeypatch.setattr("holdfast.runtime.storage.log.END_SPAN_SECONDS_MAX", RECORD_AGING_SECONDS)
    watcher = watched(40, seed=None)
    monkeypatch.undo()
    shop = watcher.shop

    (one_day,) = [seen for seen in watcher.seen if seen.day == 95]
    assert (one_day.shown, one_day.history, one_day.started) == (None, None, watcher.run)
    assert shop.world.faults == []
    assert shop.world.services.depth("work") == 0
    assert shop.world.task_runs.total() == 1


def test_a_record_that_an_ended_log_lacks_is_damage_until_ttl_may_have_taken_it() -> None:
    shop = Shop(flow())
    run = shop.start(INPUT, NAME)
    shop.send_event()
    shop.world.run(until_ms=START_MS + HOUR_MS)
    shop.world.services.perform(Delete("executions", keys.execution("default", run), 0))

    for ask in (shop.front.describe, shop.front.history):
        with pytest.raises(HoldfastBug, match="record 0"):
            shop.world.call(ask("default", run))


# -- the list --------------------------------------------------------------------------------------


def listed(shop: Shop) -> list[tuple[int, str]]:
    """Return the records by which the one execution is listed, with the listed status."""
    items = shop.world.services.items("executions")
    return [(int(item["sk"]), str(item["st"])) for item in items if "lp" in item]


class FaultAt:
    """From a moment on, the nth write to a log or its place in the list goes wrong."""

    def __init__(self, number: int | None, when: When, fault: BaseException) -> None:
        self._at = (number, when)
        self._fault = fault
        self.from_ms = START_MS
        self.seen: dict[When, int] = {"before": 0, "after": 0}

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        is_record = isinstance(effect, PutIfAbsent) and effect.table == "executions"
        if world.now_ms < self.from_ms or not (is_record or isinstance(effect, Unlist)):
            return
        number, self.seen[when] = self.seen[when], self.seen[when] + 1
        if (number, when) == self._at:
            raise self._fault


FAULTS: list[tuple[When, BaseException]] = [
    ("before", Killed()),
    ("after", Killed()),
    ("before", ServiceFault("HF321", "slow down")),
]


@pytest.mark.parametrize(("days", "count"), [(SHOWN_DAYS - 1, 1), (SHOWN_DAYS + 1, 0)])
def test_a_state_machine_lists_an_execution_for_as_long_as_any_other(days: int, count: int) -> None:
    stack = Repair().stack
    stack.start(None)
    stack.world.run()
    (machine_item,) = stack.call("ListStateMachines")["stateMachines"]
    stack.world.now_ms += days * DAY_MS
    listed = stack.call("ListExecutions", stateMachineArn=machine_item["stateMachineArn"])

    assert len(listed["executions"]) == count


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(("when", "fault"), FAULTS)
def test_a_renewed_execution_is_listed_once_in_spite_of_faults(
    number: int, when: When, fault: BaseException
) -> None:
    hook = FaultAt(number, when, fault)
    hook.from_ms = START_MS + 45 * DAY_MS
    shop = Shop(flow(), hook=hook)
    run = shop.start(INPUT, NAME)
    shop.world.run(until_ms=START_MS + 60 * DAY_MS)
    assert hook.seen["before"] >= 2
    ((renewed_at, status),) = listed(shop)
    assert (renewed_at > 0, status) == (True, "RUNNING")

    shop.send_event()
    shop.world.run(until_ms=START_MS + 61 * DAY_MS)
    assert listed(shop) == [(shop.history(run).records[-1].sequence, "SUCCEEDED")]


def test_an_execution_redriven_in_a_record_with_a_snapshot_is_listed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.runtime.storage.log.SNAPSHOT_BYTES_MIN", 0)
    monkeypatch.setattr("holdfast.runtime.storage.log.SNAPSHOT_RATIO", 0)
    counting = FaultAt(None, "before", Killed())
    Repair(counting).run()
    for number, (when, fault) in product(range(counting.seen["before"]), FAULTS):
        repair = Repair(FaultAt(number, when, fault))
        assert repair.run() == EXPECTED
        parent = repair.stack.parent
        found = [item["sk"] for item in parent.items if "lp" in item]
        assert found == [parent.records[-1].sequence], (number, when, fault)
        assert repair.stack.is_sound


# -- quarantine ------------------------------------------------------------------------------------


def test_a_quarantined_execution_that_was_never_opened_outlives_its_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its first record is full, and every worker that evaluates the next state crashes."""
    monkeypatch.setattr(advance, "PURE_STATES_PER_RECORD_MAX", 2)
    bomb = Bomb(monkeypatch)
    plain = [{"Type": "Pass", "Next": "b"}, {"Type": "Pass", "Next": "bomb"}]
    end = {"Type": "Pass", "Output": 600, "End": True}
    shop = Shop(machine({"a": plain[0], "b": plain[1], "bomb": end}))
    run = shop.start(INPUT, NAME)
    shop.world.run(until_ms=START_MS + DAY_MS)
    for _ in range(2):
        shop.world.now_ms += 46 * DAY_MS
        Ttl(shop.world, None).expire()
        # It is renewed, tried once more, and quarantined again.
        shop.world.run(until_ms=shop.world.now_ms + 5 * HOUR_MS)
    (found,) = findings(shop.world, names=("flow",))
    assert (found["execution"], found["reason"]) == (run, "QUARANTINED")
    assert shop.describe(run)["status"] == "RUNNING"

    bomb.is_armed = False
    findings(shop.world, names=("flow",), is_repairing=True)
    shop.world.run(until_ms=shop.world.now_ms + HOUR_MS)
    assert shop.describe(run)["output"] == 600


# -- the bus ---------------------------------------------------------------------------------------


def test_the_events_of_a_record_with_a_snapshot_are_published_in_spite_of_crashes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.runtime.storage.log.SNAPSHOT_BYTES_MIN", 0)
    monkeypatch.setattr("holdfast.runtime.storage.log.SNAPSHOT_RATIO", 0)
    monkeypatch.setattr("holdfast.runtime.storage.log.END_SPAN_SECONDS_MAX", -1)
    counting = FaultAt(None, "before", Killed())
    Repair(counting).run()
    for number, (when, fault) in product(range(counting.seen["before"]), FAULTS):
        repair = Repair(FaultAt(number, when, fault))
        world = repair.stack.world
        world.setting = replace(world.setting, status_source="holdfast.states")
        assert repair.run() == EXPECTED
        told = [
            (one.detail["status"], one.detail["redriveCount"]) for one in world.services.published
        ]
        expected = [("RUNNING", 0), ("FAILED", 0), ("RUNNING", 1), ("SUCCEEDED", 1)]
        assert list(dict.fromkeys(told)) == expected, (number, when, fault)
