"""Two versions of one workflow in one simulated stack: executions begin on the first."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.compiler.compile import CompiledWorkflow, compile_module
from holdfast.core.state import Execution
from holdfast.migration.positions import position_of
from holdfast.migration.proof import Migration
from holdfast.migration.version import Version
from holdfast.runtime.child_workflows import Workflows
from holdfast.runtime.commands.api import Front
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.runtime.storage.definitions import Definition
from holdfast_simulator.invariants import StoredHistory
from holdfast_simulator.world import Hook, no_faults
from tests.builders import CHANCE, KEYS, AnyTypes, Shop
from tests.unit.dsl_kit import loaded
from tests.unit.pausing_test import settle

HEADER = """
from pydantic import BaseModel

from holdfast import (
    Retry, TaskError, ask, compensating, each, first, hours, migrates, minutes, parallel, pure,
    role, seconds, sleep, task, timeout, wait_for_condition, wait_for_event, workflow,
)

@task(retry=Retry(max_attempts=9, interval=minutes(10), jitter=False))
def pay(amount: int) -> str: ...
@task
def check(amount: int) -> bool: ...
@task
def ship(receipt: str) -> None: ...
@task
def refund(receipt: str) -> None: ...
@task
def find(amount: int) -> str | None: ...
"""
WHY = {"reason": "the new check is law", "by": "ann"}
LOAN = Path(__file__).parents[2] / "statemachines" / "loan_approval.py"

Work = Callable[[RunTask], TaskSucceeded | TaskFailed]


def compiled(folder: Path, source: str, header: str = HEADER) -> CompiledWorkflow:
    with loaded(folder, header + source) as module:
        return _one(module)


def compiled_loan(folder: Path, *changes: tuple[str, str]) -> CompiledWorkflow:
    """The loan of the examples, with each text replaced by another one."""
    source = LOAN.read_text()
    for before, after in changes:
        assert before in source, before
        source = source.replace(before, after)
    with loaded(folder, source) as module:
        return _one(module)


def _one(module: ModuleType) -> CompiledWorkflow:
    """Both versions of a module have one name in a deployment, and two in a test."""
    (found,) = compile_module(sys.modules[module.__name__])
    answers = {name: f"flows:{of.partition(':')[2]}" for name, of in found.answers.items()}
    return replace(found, answers=answers)


def definition_of(one: CompiledWorkflow) -> Definition:
    return Definition(one.asl, json.loads(one.map_text), one.definition_hash)


def version_of(one: CompiledWorkflow) -> Version:
    return Version(one.definition_hash, one.asl, json.loads(one.map_text))


class TwoVersions(Shop):
    """A stack whose executions begin on `old`; `deploy` makes `new` the newest version."""

    def __init__(
        self, old: CompiledWorkflow, new: CompiledWorkflow, work: Work, hook: Hook = no_faults
    ) -> None:
        super().__init__(old.asl, work, hook)
        self.old, self.new = definition_of(old), definition_of(new)
        self.programs.add(self.old)
        self.front = Front(self.programs, {"flow": self.old}, AnyTypes(), KEYS)

    def begun(self, data: Any = None, name: str = "order-1", seconds: float = 1) -> str:
        run = self.start(data, name)
        settle(self, seconds)
        return run

    def deploy(self, version: Definition | None = None, types: AnyTypes | None = None) -> None:
        newest, known = {"flow": version or self.new}, types or AnyTypes()
        self.front = Front(self.programs, newest, known, KEYS)
        setting = self.world.setting
        self.world.setting = replace(setting, workflows=Workflows(newest, known))

    def migrate(self, run: str, **more: Any) -> Any:
        request = {**WHY, **more}
        return self.insist(lambda: self.front.migrate("default", run, request, CHANCE))

    def dry_run(self, run: str) -> Any:
        return self.migrate(run, dry_run=True)

    def reasons(self, run: str) -> list[str]:
        return [one["why"] for one in self.dry_run(run)["obstacles"]]

    def state(self, run: str) -> Execution:
        return self.history(run).states[-1]

    def moves(self, run: str) -> list[Any]:
        return [event.holdfast for event in self.events(run) if event.type == "Migrated"]

    def events(self, run: str) -> Any:
        history: StoredHistory = self.history(run)
        return history.events

    def scheduled(self, run: str, task: str) -> int:
        """How often the task was asked for; its retries do not count."""
        return sum(
            event.details.get("resource") == f"task:{task}" and event.holdfast["attempt"] == 1
            for event in self.events(run)
            if event.type == "TaskScheduled"
        )


def judged(old: CompiledWorkflow, new: CompiledWorkflow, state: Execution) -> list[str]:
    """The reasons against the move of this state; [] when it may move."""
    migration = Migration(version_of(old), version_of(new))
    verdict = migration.judge(position_of(state, migration.old))
    return [str(one) for one in verdict.obstacles]
