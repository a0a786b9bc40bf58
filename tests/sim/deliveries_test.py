"""The effects of earlier and concurrent deliveries of a message: crashed workers, concurrent starts
of one execution, and messages whose wake was lost.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.limits import ATTEMPTS_IN_FLIGHT_MAX
from holdfast.runtime.effects import (
    Effect,
    PutIfAbsent,
    QueueName,
    RunTask,
    Send,
    TaskResult,
    TaskSucceeded,
)
from holdfast.runtime.storage.definitions import Programs
from holdfast.runtime.storage.keys import execution
from holdfast.runtime.worker.config import WorkerConfig
from holdfast.sealed import Sealed
from holdfast_simulator.invariants import check
from holdfast_simulator.queues import Received
from holdfast_simulator.world import START_MS, Killed, SimulatorWorld, When
from tests.builders import CHANCE, Shop, ask, call, machine, wait_for
from tests.unit.stack_kit import Stack

DAY_SECONDS = 86_400
HOUR_MS = 3_600_000


def is_record(effect: Effect) -> bool:
    return isinstance(effect, PutIfAbsent) and effect.table == "executions"


# -- crashed workers of the message ----------------------------------------------------------------


class Seen(SimulatorWorld):
    """Records how each crashed worker had received its message."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.deaths: list[tuple[str, QueueName]] = []
        self.body: Any = None

    def deliver(self, received: Received, queue: QueueName) -> bool:
        before, self.body = self.kills, received.body
        is_done = super().deliver(received, queue)
        if self.kills > before:
            self.deaths.append((str(received.body["k"]), queue))
        return is_done


def test_a_worker_that_crashes_at_a_handed_over_task_is_counted_and_the_task_isolated() -> None:
    """The second task is begun by another invocation: its time-out does not fit into the first."""

    def kill(effect: RunTask) -> TaskResult:
        if effect.name == "poison":
            raise Killed
        return TaskSucceeded(None)

    states = {"first": call("fine", "second"), "second": call("poison", TimeoutSeconds=840)}
    shop = Shop(machine(states), tasks=kill)  # type: ignore[arg-type]
    world = shop.world = Seen(shop.world.setting, kill)
    state = shop.run().state

    assert state.error == "Holdfast.WorkerLost"
    assert [queue for _, queue in world.deaths] == ["work", "work", "single", "single"]
    assert world.deaths[0] == ("go", "work")
    assert state.stopped_ms is not None
    assert state.stopped_ms - START_MS < 600_000  # No worker waits until the lease lapses
    assert check(world) == []


def test_an_isolated_task_does_not_wait_for_the_lease_of_its_former_worker() -> None:
    """More branches than places. The first worker crashes at one branch, the second hands the last
    one over, and the worker that receives it crashes too.
    """

    def work(_: RunTask) -> TaskResult:
        died = [kind for kind, _ in world.deaths]
        if world.body["k"] in {"start", "go"}.difference(died):
            raise Killed
        world.now_ms += 2_000
        return TaskSucceeded(None)

    branches = [
        {"StartAt": f"b{n}", "States": {f"b{n}": call("work", TimeoutSeconds=840)}}
        for n in range(ATTEMPTS_IN_FLIGHT_MAX + 1)
    ]
    shop = Shop(machine({"all": {"Type": "Parallel", "Branches": branches, "End": True}}))
    world = shop.world = Seen(shop.world.setting, work)
    state = shop.run().state

    assert world.deaths == [("start", "starts"), ("go", "work")]
    assert state.status == "SUCCEEDED"
    assert state.stopped_ms is not None
    assert state.stopped_ms - START_MS < 600_000
    assert check(world) == []


# -- concurrent starts of one execution ------------------------------------------------------------


def test_a_worker_that_loses_record_0_to_a_concurrent_delivery_reads_the_stops() -> None:
    """The concurrent worker is frozen at record 0, writes it at last, and crashes. Meanwhile there
    is no log, and the wake of the stop finds no execution to stop.
    """
    shop = Shop(machine({"nap": {"Type": "Wait", "Seconds": 30 * DAY_SECONDS, "End": True}}))
    records: list[Effect] = []

    def freeze_the_first(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if not is_record(effect) or when != "before":
            return
        records.append(effect)
        if len(records) == 1:
            raise Killed  # Nothing else shows this crash
        if len(records) == 2:
            world.services.perform(records[0])

    shop.world.hook = freeze_the_first
    run = shop.start()
    shop.world.run(until_ms=START_MS + 1_000)
    shop.stop(run)
    shop.world.run(until_ms=START_MS + HOUR_MS)

    assert len(records) > 2
    assert shop.history(run).state.status == "ABORTED"


def test_the_result_of_a_start_that_did_not_count_does_not_count() -> None:
    """One name, twice the same input with different ciphertexts of a secret: the first record 0
    decides, and the other worker has run its first task by then.
    """
    first, second = (Sealed("k1", data, 3).text for data in (b"one", b"two"))
    shop = Shop(
        machine({"echo": call("echo", Arguments="{% $states.input %}")}),
        tasks=lambda effect: TaskSucceeded(effect.arguments),
    )
    knowing = shop.world.setting
    ran: list[Any] = []

    def start_again_meanwhile(world: SimulatorWorld, effect: Effect, when: When) -> None:
        if not isinstance(effect, RunTask) or when == "before":
            return
        ran.append(effect.arguments)
        if len(ran) == 1:
            shop.start(second)
            # A worker that has to read the definition writes record 0 first: the task has a lease
            # and is not over.
            world.setting = WorkerConfig(Programs(), knowing.knows, knowing.keys)
            (other,) = world.services.receive("starts")
            world.deliver(other, "starts")
        elif len(ran) == 2:
            raise Killed

    shop.world.hook = start_again_meanwhile
    run = shop.start(first)
    shop.world.run()

    assert ran[:2] == [first, second]
    state = shop.history(run).state
    assert state.input == second
    assert state.output == second


@pytest.mark.parametrize(
    ("said", "waits"),
    [
        ("{% $states.input %}", False),
        ("{% $now() %}", True),
        ("{% $states.context.Execution.StartTime %}", True),
        ("{% $states %}", True),
    ],
)
def test_a_lane_whose_first_task_depends_on_the_time_begins_it_after_its_record(
    said: str, waits: bool
) -> None:
    """Its start may be sent again, at another time: the record decides which of the two counts."""
    task = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
    arguments = {"FunctionName": "f", "Payload": said}
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "it",
        "States": {"it": {**task, "Arguments": arguments}},
    }
    lanes = {"Type": "Map", "Items": [1, 2], "ItemProcessor": processor, "End": True}
    ran: list[bool] = []

    def work(effect: RunTask) -> TaskResult:
        begun = {str(item["pk"]) for item in stack.world.services.items("executions")}
        ran.append(execution(effect.tenant, effect.run) in begun)
        return TaskSucceeded("done")

    stack = Stack(json.dumps(machine({"all": lanes})), work)

    assert stack.run(None) == ["done", "done"]
    assert ran == [waits, waits]
    assert check(stack.world) == []


# -- messages whose wake was lost ------------------------------------------------------------------


def _event(shop: Shop, _run: str) -> None:
    request = {"name": "paid", "key": "k1", "data": {"n": 1}, "id": "e1"}
    shop.world.call(shop.front.event(shop.tenant, request, CHANCE))


def _answer(shop: Shop, run: str) -> None:
    token = shop.describe(run)["waits"][0]["token"]
    shop.world.call(shop.front.answer(shop.tenant, {"token": token, "output": {"n": 1}}))


@pytest.mark.parametrize(("wait", "bring"), [(wait_for("paid"), _event), (ask(), _answer)])
def test_stored_mail_wins_against_the_time_out_of_the_whole_execution(
    wait: Any, bring: Any
) -> None:
    """R14. The sender of the answer crashes before it sends the wake, and does not come back."""
    shop = Shop(machine({"wait": wait}, TimeoutSeconds=60))

    def die_before_telling(_world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "before" and isinstance(effect, Send):
            raise Killed

    run = shop.start()
    shop.world.run(until_ms=START_MS + 1_000)
    shop.world.hook = die_before_telling
    with pytest.raises(Killed):
        bring(shop, run)
    shop.world.run()

    state = shop.history(run).state
    assert (state.status, state.output) == ("SUCCEEDED", {"n": 1})
