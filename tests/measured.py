"""Worlds that write every metric: their handlers' measurements go through the functions' `Metrics`,
and what it writes is read back as lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.aws.telemetry import LABEL_FIELDS, Metrics
from holdfast.runtime.commands.counts import measure_open
from holdfast.runtime.commands.pools import measure_pools
from holdfast.runtime.effects import Measure, Put, PutIfAbsent, RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.gates.rules import LimitRule, LimitUse
from holdfast.runtime.maintenance import dead_letters, sweeper
from holdfast.runtime.storage.spread import DUE, Spread
from holdfast_simulator.flow import START_MS, FlowWorld, Work
from holdfast_simulator.flow import machine as machine_of_tasks
from holdfast_simulator.world import Killed
from tests.builders import CHANCE, Machine, Shop, call, chain, machine, wait_for
from tests.unit.states_world import PASS, Office, states

STACK = "Default"
HOUR_MS = 3_600_000
TWICE = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2}]
_AT_ONCE = LimitRule("ledger", concurrency=1)
Line = dict[str, Any]
Fate = Callable[[RunTask], TaskSucceeded | TaskFailed]


def lines_of(measured: Iterable[Measure]) -> list[Line]:
    metrics, lines = Metrics(STACK), list[str]()
    for measure in measured:
        metrics(measure)
    metrics.flush(START_MS, lines.append)
    return [json.loads(line) for line in lines]


class Measured(Shop):
    """A shop whose measurements are kept."""

    def __init__(self, definition: Machine, tasks: Fate = lambda _: TaskSucceeded(1)) -> None:
        super().__init__(definition, tasks)
        self.measured: list[Measure] = []
        self.world.services.when_measured = self.measured.append

    @property
    def lines(self) -> list[Line]:
        return lines_of(self.measured)

    def rows(self, metric: str) -> list[tuple[Any, ...]]:
        """Return the value and the labels of each line with the metric."""
        return [
            (line[metric], *(line[field] for field in LABEL_FIELDS if field in line))
            for line in self.lines
            if metric in line
        ]

    def sweep(self) -> None:
        for shard in range(DUE.least):
            self.world.call(sweeper.sweep(shard, "sweeper"))


def a_failed_order() -> Measured:
    def declined(effect: RunTask) -> TaskFailed:
        return TaskFailed("Declined", "card 4111 1111")

    shop = Measured(machine({"pay": call("charge", Retry=TWICE)}), declined)
    shop.run()
    return shop


def a_timer() -> Measured:
    shop = Measured(machine({"nap": {"Type": "Wait", "Seconds": 60, "End": True}}))
    shop.run()
    return shop


def a_lost_worker() -> Measured:
    runs: list[RunTask] = []

    def deadly_once(effect: RunTask) -> TaskSucceeded:
        runs.append(effect)
        if len(runs) == 2:
            raise Killed
        return TaskSucceeded("done")

    shop = Measured(machine({"a": call("x", "b"), "b": call("y")}), deadly_once)
    shop.run()
    return shop


def a_lost_race() -> Measured:
    shop = Measured(chain(3))
    records: list[Any] = []

    def rival(world: Any, effect: Any, when: str) -> None:
        if when == "before" and isinstance(effect, PutIfAbsent) and effect.table == "executions":
            records.append(effect)
            if len(records) == 1:
                for received in world.services.receive("starts"):
                    world.deliver(received, "starts")

    shop.world.hook = rival
    shop.start({"n": 0})
    (first,) = shop.world.services.receive("starts")
    shop.start({"n": 0})
    shop.world.deliver(first, "starts")
    shop.world.run()
    return shop


def a_stuck_order() -> Measured:
    """The queue that held its timer is purged: the sweeper finds it at the next check."""
    shop = Measured(machine({"nap": {"Type": "Wait", "Seconds": 600, "End": True}}))
    shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    for received in shop.world.services.receive("work"):
        shop.world.services.delete(received.receipt)
    shop.world.now_ms += 2 * HOUR_MS
    for received in shop.world.services.receive("work"):
        shop.world.services.delete(received.receipt)
    shop.sweep()
    return shop


def a_repaired_order() -> Measured:
    shop = Measured(machine({"it": wait_for("paid")}))
    run = shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    word = {"reason": "the bank is down"}
    for act in (shop.front.pause, shop.front.resume):
        shop.insist(lambda act=act: act("default", run, word, CHANCE))  # type: ignore[misc]
        shop.world.run(until_ms=shop.world.now_ms + 1_000)
    return shop


def a_quarantined_order() -> Measured:
    shop = Measured(machine({"it": wait_for("paid")}))
    body = {"f": 1, "k": "recover", "t": "default", "run": "0" * 26, "of": ["m1", "m2"]}
    shop.world.call(dead_letters.revive(dead_letters.StoredDeadLetter(body, "m3")))
    return shop


def a_damaged_row() -> Measured:
    shop = Measured(machine({"it": wait_for("paid")}))
    shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    newest = shop.world.services.items("executions")[-1]
    torn = {key: value for key, value in newest.items() if key != "sn"}
    shop.world.services.perform(Put("executions", torn))
    shop.world.now_ms += 24 * 8 * HOUR_MS
    shop.sweep()
    return shop


def open_orders() -> Measured:
    shop = Measured(machine({"it": wait_for("paid")}))
    for name in ("o1", "o2"):
        shop.start(name=name)
        shop.world.now_ms += 1_000
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    shop.world.call(measure_open("default", Spread()))
    return shop


def a_pool() -> Measured:
    render = {**call("x"), "Resource": "holdfast:pool:gpu", "Arguments": {"task": "render"}}
    shop = Measured(machine({"render": render}))
    shop.start()
    shop.world.run(until_ms=shop.world.now_ms + 1_000)
    shop.world.now_ms += 60_000
    shop.world.call(measure_pools(shop.front.known, "default"))
    return shop


def measured_at_a_limit() -> list[Measure]:
    measured: list[Measure] = []
    uses = {"charge": (LimitUse(_AT_ONCE),)}
    world = FlowWorld(uses, machine_of_tasks(("charge",), 20), seed=1)
    world.services.when_measured = measured.append
    for number in range(3):
        world.start(Work(number, seconds=1), f"o{number}")
    world.run(START_MS + 60_000)
    assert world.errors == []
    return measured


def measured_of_a_refused_log() -> list[Measure]:
    office = Office(lambda _: TaskFailed("CloudWatchLogs.AccessDeniedException", "no"))
    measured: list[Measure] = []
    office.world.services.when_measured = measured.append
    group = {"logGroupArn": "arn:aws:logs:eu-west-1:123456789012:log-group:g:*"}
    log = {"level": "ALL", "destinations": [{"cloudWatchLogsLogGroup": group}]}
    office.start(office.create(states(A=PASS), loggingConfiguration=log))
    office.wait(10)
    return measured


def everything() -> list[Line]:
    """Return the lines of worlds that together write every metric."""
    worlds = (a_failed_order, a_timer, a_lost_worker, a_lost_race, a_stuck_order)
    repaired = (a_repaired_order, a_quarantined_order, a_damaged_row, open_orders, a_pool)
    shops = [make() for make in (*worlds, *repaired)]
    others = [*measured_at_a_limit(), *measured_of_a_refused_log()]
    return [line for shop in shops for line in shop.lines] + lines_of(others)
