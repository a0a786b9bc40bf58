"""A stack gets more partitions, or fewer, while it has executions: no row is lost.

Each test changes `starts_per_second` as a deployment does, through the sweeper, and waits as long
as other processes need to read it.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from holdfast import resources
from holdfast.core.run_ids import SPREAD_MAX, spread_of
from holdfast.limits import ENDED_RETENTION_SECONDS
from holdfast.runtime.commands.once import Moment, once
from holdfast.runtime.effects import Unlist
from holdfast.runtime.maintenance import lost_starts
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.format_control import SPREAD_MINTED_MS, Control
from holdfast.runtime.storage.spread import DUE, STARTS
from holdfast_simulator.invariants import check
from tests.builders import Machine, Shop, call, machine, wait_for
from tests.sim.doctor_kit import purge

HOUR, DAY = 3_600, 86_400

NAME = "{% $states.context.Execution.Name %}"
#: A task, a wait for an event, and a wait of days.
LIFE: Machine = machine(
    {
        "first": call("add", "paid", Arguments={"n": 1}),
        "paid": {**wait_for("paid", "nap"), "Arguments": {"event": "paid", "key": NAME}},
        "nap": {"Type": "Wait", "Seconds": 3 * DAY, "Next": "last"},
        "last": call("add", Arguments={"n": 1}),
    }
)


class Growing:
    """A stack whose setting changes. `begun`: the executions by name."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # repeatable, not secret
        self.shop = Shop(LIFE)
        self.world = self.shop.world
        self.control = Control(self.world.setting.formats, self.world.setting.spread)
        self.begun: dict[str, str] = {}

    def deploy(self, spread: int) -> None:
        """Deploy the setting, and wait until it counts for new ids."""
        self.world.call(self.control.grow(spread))
        self.settle(SPREAD_MINTED_MS // 1_000)
        self.world.call(self.control.look(self.world.now_ms))

    def settle(self, seconds: int) -> None:
        until_ms = self.world.now_ms + seconds * 1_000
        self.world.run(until_ms=until_ms)
        self.world.now_ms = until_ms

    def start(self, count: int) -> None:
        for _ in range(count):
            name = f"order-{len(self.begun)}"
            request = {"workflow": "flow", "name": name, "input": {"n": 0}}
            chance = self.chance.randbytes(8)
            told = self.world.call(self.shop.front.start("default", request, chance))
            self.begun[name] = str(told["execution"])

    def pay(self, name: str) -> None:
        request = {"name": "paid", "key": name, "data": 1, "id": f"paid-{name}"}
        self.world.call(self.shop.front.event("default", request, b"payspays"))

    def listed(self, **wanted: Any) -> set[str]:
        found: list[str] = []
        after: dict[str, Any] = {}
        while True:
            request = {"limit": "20", **wanted, **after}
            page = self.world.call(self.shop.front.executions("default", request))
            found += [row["execution"] for row in page["executions"]]
            if "next" not in page:
                break
            after = {"after": page["next"]}
        assert len(found) == len(set(found))  # no page shows an execution again
        return set(found)

    def counted(self) -> int:
        told = self.world.call(self.shop.front.counts("default", {}))
        return sum(row["count"] for row in told["counts"])

    def examine(self) -> tuple[list[Any], int]:
        """Return the findings of the doctor, and the number of executions that it examined."""
        found: list[Any] = []
        examined = 0
        after: dict[str, Any] = {}
        while True:
            told = self.world.call(self.shop.front.doctor("default", after, is_repairing=False))
            found += told["findings"]
            examined += told["examined"]
            if "next" not in told:
                return found, examined
            after = {"after": told["next"]}


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_every_spread_are_swept_listed_and_cleaned_up(seed: int) -> None:
    """Executions of each spread start, are listed and counted, wait, fire, end and expire."""
    print(f"seed {seed}")
    stack = Growing(seed)
    stack.start(4)
    spreads = [0]
    for _ in range(3):
        spreads.append(stack.chance.randint(0, SPREAD_MAX))
        stack.deploy(spreads[-1])
        stack.start(4)
        for name in stack.chance.sample(sorted(stack.begun), 2):
            stack.pay(name)
        stack.settle(stack.chance.choice([1, HOUR, DAY]))
    runs = set(stack.begun.values())
    assert {spread_of(run) for run in runs} == set(spreads)
    assert stack.world.setting.spread.read == max(spreads)

    assert stack.listed() == runs
    assert stack.counted() == len(runs)
    waiting = stack.listed(waits_for="event:paid")
    assert waiting <= stack.listed(status="RUNNING")
    assert len(waiting) >= len(runs) - 6
    assert stack.examine() == ([], len(stack.listed(status="RUNNING")))

    for name in stack.begun:
        stack.pay(name)
    stack.settle(4 * DAY)
    assert stack.listed(status="SUCCEEDED") == runs
    assert stack.examine()[0] == []
    assert check(stack.world) == []
    stack.settle(7 * DAY)  # by then the sweeper has checked each of them
    for shard in range(DUE.count(SPREAD_MAX)):
        assert not stack.world.services.partition(tables.MAIL, keys.due_partition(shard))

    stack.world.now_ms += ENDED_RETENTION_SECONDS * 1_000
    assert stack.listed() == set()


@pytest.mark.parametrize("is_listed", [True, False])
def test_the_doctor_finds_stuck_executions_of_every_spread_once(is_listed: bool) -> None:
    """Without list entries it finds them by the watchdog rows."""
    stack = Growing(1)
    for spread in (0, 3, 1, 4):
        stack.deploy(spread)
        stack.start(5)
    for name in stack.begun:
        stack.pay(name)
    stack.settle(HOUR)
    purge(stack.world)
    for record in stack.world.services.items(tables.EXECUTIONS):
        if not is_listed and resources.LIST_PARTITION in record:
            stack.world.perform(Unlist(str(record["pk"]), int(record["sk"])))
    stack.world.now_ms += 4 * DAY * 1_000

    found, examined = stack.examine()
    assert sorted(one["execution"] for one in found) == sorted(stack.begun.values())
    assert examined == len(stack.begun)


@pytest.mark.parametrize("spreads", [(0, 4), (4, 1), (2, 3)])
def test_a_start_whose_message_was_lost_is_found_after_the_setting_has_changed(
    spreads: tuple[int, int],
) -> None:
    """The worker that gets the sweeper's message of the shard sends the start again."""
    stack = Growing(1)
    stack.deploy(spreads[0])
    stack.start(5)
    purge(stack.world)
    stack.deploy(spreads[1])
    stack.settle(20 * 60)
    if stack.world.setting.spread.read >= 2:
        assert STARTS.count(stack.world.setting.spread.read) > STARTS.least
        stack.world.call(lost_starts.hand_out(STARTS.count(stack.world.setting.spread.read)))
    stack.settle(60)

    assert stack.listed(status="RUNNING") == set(stack.begun.values())
    assert check(stack.world) == []


def test_new_ids_get_a_new_spread_when_every_process_reads_its_shards() -> None:
    """A reader may have read the setting up to a minute ago."""
    stack = Growing(1)
    reader = Control(stack.world.setting.formats)
    start_ms = stack.world.now_ms
    stack.world.call(reader.look(start_ms))
    stack.world.call(stack.control.grow(3))
    while stack.control.spread.minted == 0:
        assert stack.control.spread.read == 3
        stack.world.now_ms += 10_000
        stack.world.call(stack.control.look(stack.world.now_ms))
        stack.world.call(reader.look(stack.world.now_ms))
    assert (reader.spread.read, stack.world.now_ms - start_ms) == (3, SPREAD_MINTED_MS)


def test_a_rollback_within_the_two_minutes_mints_no_id_that_a_process_does_not_read() -> None:
    stack = Growing(1)
    stack.world.call(stack.control.grow(4))
    stack.world.now_ms += 30_000
    stack.world.call(stack.control.grow(1))
    assert (stack.control.spread.minted, stack.control.spread.read) == (0, 4)
    stack.world.now_ms += SPREAD_MINTED_MS
    stack.world.call(stack.control.look(stack.world.now_ms))
    assert (stack.control.spread.minted, stack.control.spread.read) == (1, 4)


def test_a_fork_that_a_bulk_operation_repeats_after_a_change_is_the_same_fork() -> None:
    stack = Growing(1)
    stack.start(1)
    stack.settle(HOUR)
    [run] = stack.begun.values()
    request, chance = {"step": "first", "reason": "again", "by": "ada"}, b"the same"
    moment = Moment("default", run, stack.world.now_ms, chance)

    def fork() -> list[str]:
        asked = stack.shop.front.fork("default", run, request, chance)
        stack.world.call(once(asked, moment))
        shown = stack.world.call(stack.shop.front.describe("default", run, with_forks=True))
        return list(shown["forks"])

    first = fork()
    stack.deploy(3)
    assert fork() == first
