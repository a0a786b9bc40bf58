"""The progress that a task reports with its heartbeats, where the engine runs the task itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.deployment import Deployment
from holdfast.errors import ServiceFault
from holdfast.local.clock import VirtualClock
from holdfast.local.stack import deployment_of, local_stack
from holdfast.runtime.effects import Clock, Effect, RunTask, TaskSucceeded
from holdfast.task_runs import StoredPulse
from holdfast.testing import World, fails, real
from tests.unit.dsl_kit import loaded

COPIES = """
from holdfast import Retry, TaskError, heartbeat, minutes, seconds, task, task_context, workflow

looks, firsts = [], []

class Busy(TaskError): ...

@task(timeout=minutes(5), heartbeat=minutes(1), retry=Retry(3, seconds(1), on=(Busy,)))
def copy(rows: int) -> int:
    first = (task_context().progress or {"done": 0})["done"]
    firsts.append(first)
    for row in range(first, rows):
        heartbeat({"done": row})
        for look in looks:
            look()
        if row == 3 and task_context().attempt == 1:
            raise Busy("the disk")
    return rows

@workflow
def flow(rows: int) -> int:
    return copy(rows)
"""


def test_show_has_the_progress_and_the_next_attempt_continues_there(tmp_path: Path) -> None:
    clock, shown = VirtualClock(1_800_000_000_000), list[Any]()
    with (
        loaded(tmp_path, COPIES) as module,
        local_stack(deployment_of([module.__name__]), clock) as stack,
    ):

        def show() -> Any:
            return json.loads(stack.request("GET", "/executions/a").body)

        def look() -> None:
            shown.extend(wait.get("progress") for wait in show()["waits"])

        module.looks.append(look)
        start = {"workflow": "flow", "input": {"rows": 6}, "name": "a"}
        stack.request("POST", "/executions", json.dumps(start).encode())
        stack.pump.run_until_idle()
        while (ended := show())["status"] == "RUNNING":
            clock.advance(1_000)
            stack.pump.run_until_idle()
    assert ended["output"] == 6
    # Within a third of the heartbeat only one is stored, and the last one when the attempt fails.
    assert module.firsts == [0, 3]
    assert shown[-1] == {"done": 3}


def test_a_task_in_a_test_continues_at_its_own_progress(tmp_path: Path) -> None:
    with loaded(tmp_path, COPIES) as module:
        run = World({module.copy: real}).run(module.flow, 6)
        assert (run.output, module.firsts) == (6, [0, 3])
        module.firsts.clear()
        lost = World({module.copy: fails(module.Busy("lost"), then=real)})
        assert lost.run(module.flow, 2).output == 2
        assert module.firsts == [0]


def test_progress_is_stored_at_most_three_times_within_a_heartbeat() -> None:
    now, stored = [0.0], list[Any]()

    def store(progress: Any) -> bool:
        stored.append(progress)
        return len(stored) != 2

    pulse = StoredPulse(30, lambda: now[0], store, lambda: False)
    for second in range(30):
        now[0] = float(second)
        pulse.beat(second)
    # The second put was refused. In an outage a try at each heartbeat would slow the task down.
    assert stored == [0, 10, 20]
    pulse.save()
    pulse.save()
    assert stored == [0, 10, 20, 29]


def test_a_heartbeat_that_cannot_be_stored_does_not_fail_the_task(tmp_path: Path) -> None:
    def perform(effect: Effect) -> Any:
        if isinstance(effect, Clock):
            return 1_800_000_000_000
        raise ServiceFault("HF275", "no route to host")

    with loaded(tmp_path, COPIES) as module:
        deployment = replace(deployment_of([module.__name__]), perform=perform)
        effect = attempt(deployment, rows=3)
        assert deployment.run_task(effect) == TaskSucceeded(3)


def attempt(deployment: Deployment, rows: int) -> RunTask:
    assert "flow" in deployment.definitions
    return RunTask(
        name="copy",
        kind="task",
        arguments={"rows": rows},
        tenant="default",
        run="a",
        run_name=None,
        workflow="flow",
        entry=1,
        attempt=1,
        deadline_ms=0,
        heartbeat_seconds=60,
    )
