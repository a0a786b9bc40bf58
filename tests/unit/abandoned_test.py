"""A task that the engine runs itself learns by its heartbeats that its execution was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast import Client
from holdfast.errors import ServiceFault
from holdfast.limits import EVENT_RETENTION_SECONDS
from holdfast.runtime import heartbeats
from holdfast.runtime.effects import Effect, Get, Update
from holdfast_simulator.world import SimulatorWorld
from tests.builders import Shop
from tests.unit import abandoned_flows as flows
from tests.unit.client_kit import MemoryStack
from tests.unit.worker_test import Stuck, deliver_all


class Stack(MemoryStack):
    """A stack in which another worker may do all that it can while a task runs."""

    world: SimulatorWorld

    def run_others(self, seconds: int = 0) -> None:
        self.world.now_ms += seconds * 1_000
        for _ in range(3):
            while self.world._deliver_visible():
                pass
            self.world.sweep()


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    found = Stack(flows.__name__, works=False)
    deployment: Any = found.front.known.types
    inside = replace(deployment, perform=found.world.perform)
    found.world.tasks = inside.run_task
    clock = SimpleNamespace(monotonic=lambda: flows.now[0])
    monkeypatch.setattr("holdfast.deployment.time", clock)
    yield found
    flows.meanwhile.clear()
    flows.read.clear()


def begin(stack: Stack, workflow: str, seconds: int = 0, *, stops: bool = True) -> Any:
    client = Client.of(stack.api)
    handle = client.start(workflow, {"name": "a"})

    def act() -> None:
        if stops:
            client.stop(handle.execution)
        stack.run_others(seconds)

    flows.meanwhile.append(act)
    stack.world.run(until_ms=stack.world.now_ms + 600_000)
    return handle.describe()


def test_a_stop_is_read_by_a_running_task(stack: Stack) -> None:
    assert begin(stack, "plain")["status"] == "ABORTED"
    assert flows.read == [("a", True, True)]


def test_a_stop_is_read_by_an_attempt_without_a_lease(stack: Stack) -> None:
    assert begin(stack, "twice")["status"] == "ABORTED"
    assert flows.read == [("a", True, True)]


def test_without_a_stop_nothing_is_read(stack: Stack) -> None:
    assert begin(stack, "plain", stops=False)["output"] == "a"
    assert flows.read == [("a", False, False)]


def test_a_task_without_heartbeat_runs_on(stack: Stack) -> None:
    assert begin(stack, "without_heartbeat")["status"] == "ABORTED"
    assert flows.read == [("a", False, False)]


def test_a_shielded_task_runs_on(stack: Stack) -> None:
    assert begin(stack, "shield")["status"] == "ABORTED"
    assert flows.read == [("a", False, False)]


def test_an_undo_step_after_the_stop_runs_on(stack: Stack) -> None:
    assert begin(stack, "undoing")["status"] == "ABORTED"
    assert sorted(flows.read) == [("a", True, True), ("undo", False, False)]


@pytest.mark.parametrize(("workflow", "output"), [("block", "late"), ("race", "slept")])
def test_an_execution_that_goes_on_without_the_task(
    stack: Stack, workflow: str, output: str
) -> None:
    assert begin(stack, workflow, 120, stops=False)["output"] == output
    assert flows.read == [("a", True, True)]


def test_an_outage_does_not_end_the_task(stack: Stack) -> None:
    def hook(_world: Any, effect: Effect, when: str) -> None:
        if isinstance(effect, Get) and str(effect.sk).startswith("h#") and when == "before":
            raise ServiceFault("HF275", "no route to host")

    stack.world.hook = hook
    assert begin(stack, "plain")["status"] == "ABORTED"
    assert flows.read == [("a", False, False)]


def test_only_the_end_of_such_an_attempt_costs_a_write(stack: Stack) -> None:
    marks: list[Update] = []

    def hook(_world: Any, effect: Effect, when: str) -> None:
        if isinstance(effect, Update) and str(effect.sk).startswith("h#") and when == "after":
            marks.append(effect)

    stack.world.hook = hook
    begin(stack, "plain", stops=False)
    begin(stack, "without_heartbeat")
    assert marks == []
    begin(stack, "plain")
    assert [mark.put["over"] for mark in marks] == [1]


def test_an_attempt_after_one_that_timed_out_is_shown(stack: Stack) -> None:
    handle = Client.of(stack.api).start("again", {"name": "a"})
    deliver_all(cast(Shop, stack), Stuck(stack.world, 61))
    (wait,) = handle.describe()["waits"]
    assert (wait["task"], wait["attempt"], "heartbeat" in wait) == ("slow", 2, False)


def test_progress_is_kept_for_an_attempt_that_begins_days_after_one_that_timed_out(
    stack: Stack,
) -> None:
    run = Client.of(stack.api).start("again", {"name": "a"}).execution
    step, now_ms = heartbeats.Step("default", run, 0), stack.world.now_ms
    expiry = now_ms // 1_000 + EVENT_RETENTION_SECONDS
    stack.world.call(heartbeats.store(step, now_ms, expiry, {"page": 7}))
    deliver_all(cast(Shop, stack), Stuck(stack.world, 61))
    beat: Any = stack.world.call(heartbeats.load(step))
    assert (beat["over"], heartbeats.progress_in(beat)) == (1, {"page": 7})
    assert beat["ttl"] >= expiry
