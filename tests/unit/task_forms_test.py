"""`async def` tasks, and heartbeats of tasks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from holdfast import HeartbeatMissed, heartbeat, seconds, task, task_context
from holdfast.api.registry import Registry
from holdfast.api.task_context import Pulse, TaskContext, running_task
from holdfast.deployment import Deployment
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded

CONTEXT = TaskContext("e1", None, "flow", "work", 1, "e1.1")


@dataclass
class Clock:
    now: float = 0.0
    steps: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        self.now += self.steps.pop(0) if self.steps else 0.0
        return self.now


@task
async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return number * 2


@task
async def key_of() -> str:
    await asyncio.sleep(0)
    return task_context().idempotency_key


@task(heartbeat=seconds(2))
def beats() -> str:
    heartbeat()
    return "done"


def test_an_async_task_returns_what_it_returns_in_the_end() -> None:
    assert doubled(4) == 8
    assert doubled.call_json({"number": 5}) == 10


def test_an_async_task_knows_its_attempt() -> None:
    with running_task(CONTEXT):
        assert key_of() == "e1.1"


def outcome(monkeypatch: pytest.MonkeyPatch, steps: list[float], heartbeat: int | None) -> object:
    monkeypatch.setattr("holdfast.task_runs.time.monotonic", Clock(steps=steps))
    deployment = Deployment(Registry({beats.name: beats}, {}), {})
    effect = RunTask(
        beats.name, "task", {}, "t", "e1", None, "flow", 1, 1, 0, heartbeat_seconds=heartbeat
    )
    return deployment.run_task(effect)


def test_a_task_that_beats_in_time_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(monkeypatch, [0, 1.5, 1.5], 2) == TaskSucceeded("done")


@pytest.mark.parametrize("steps", [[0, 8, 0], [0, 0, 8]])
def test_a_silent_task_fails_though_it_returns(
    monkeypatch: pytest.MonkeyPatch, steps: list[float]
) -> None:
    found = outcome(monkeypatch, steps, 2)
    assert isinstance(found, TaskFailed)
    assert found.error == "States.HeartbeatTimeout"
    assert found.cause == "silent for 8 seconds, and a heartbeat is due every 2"


def test_heartbeat_does_nothing_where_none_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    assert beats() == "done"
    assert outcome(monkeypatch, [0, 8, 8], None) == TaskSucceeded("done")


def test_a_late_heartbeat_raises_so_that_the_work_stops() -> None:
    pulse = Pulse(2, Clock(steps=[0, 3]))
    with running_task(CONTEXT, pulse), pytest.raises(HeartbeatMissed):
        heartbeat()
