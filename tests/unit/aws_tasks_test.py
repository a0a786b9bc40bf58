"""The performer of a task, and its cost in a process that never calls a service."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.asl.program import TaskKind
from holdfast.aws.tasks import Services, TaskRunner
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import RunTask, TaskFailed, TaskPending, TaskSucceeded

ROOT = Path(__file__).parents[2]


def asked(kind: TaskKind) -> RunTask:
    return RunTask(
        name="weigh",
        kind=kind,
        arguments={},
        tenant="default",
        run="r",
        run_name=None,
        workflow="parcels",
        entry=1,
        attempt=1,
        deadline_ms=0,
    )


def own_code(_: RunTask) -> TaskSucceeded | TaskFailed:
    return TaskSucceeded("own code")


class Calls:
    """Services whose every call succeeds, and whose actions have no fields."""

    def perform(self, _: RunTask) -> TaskSucceeded | TaskFailed:
        return TaskSucceeded("service")

    def find_misuse(self, target: str, arguments: Any) -> str | None:
        return f"{target} has no {arguments}"


def never() -> Services:
    raise AssertionError("nobody asked for a service")


@pytest.mark.parametrize("kind", ["task", "pure"])
def test_own_code_runs_without_the_performer_of_service_calls(kind: TaskKind) -> None:
    assert TaskRunner(own_code, never).perform(asked(kind)) == TaskSucceeded("own code")


@pytest.mark.parametrize("kind", ["lambda", "service", "callback", "sync", "read", "write"])
def test_a_task_that_is_not_own_code_is_a_call_of_a_service(kind: TaskKind) -> None:
    assert TaskRunner(own_code, Calls).perform(asked(kind)) == TaskSucceeded("service")


def test_the_caller_of_services_is_made_once() -> None:
    made: list[str] = []

    def make() -> Services:
        made.append("once")
        return Calls()

    tasks = TaskRunner(own_code, make)
    tasks.perform(asked("service"))
    tasks.perform(asked("sync"))

    assert made == ["once"]


def test_without_a_way_to_services_a_job_is_asked_again_and_a_task_comes_again() -> None:
    faults = [ServiceFault("HF321", "asked too often", retry="later") for _ in range(3)]

    def make() -> Services:
        if faults:
            raise faults.pop()
        return Calls()

    tasks = TaskRunner(own_code, make)
    assert tasks.find_misuse("a", 1) is None
    assert tasks.perform(replace(asked("sync"), is_poll=True)) == TaskPending()
    with pytest.raises(ServiceFault):
        tasks.perform(asked("service"))
    assert tasks.perform(asked("service")) == TaskSucceeded("service")
    assert tasks.find_misuse("a", 1) == "a has no 1"


def test_a_worker_starts_without_the_modules_of_state_machines() -> None:
    late = ["holdfast.integrations", "holdfast.stepfunctions", "holdfast.aws.protocol", "botocore"]
    program = (
        "import sys; import holdfast.aws.entry; "
        f"print([name for name in {late!r} if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert shown.stdout.strip() == "[]"
