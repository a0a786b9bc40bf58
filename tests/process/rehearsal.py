"""A scene without a trial: the same plan, in a world of memory in which nothing goes wrong."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from typing import Any, Final

from holdfast.core.events import Event
from holdfast.deployment import Deployment
from holdfast.errors import RequestError
from holdfast.runtime.effects import Item, RunTask, TableName, TaskResult
from holdfast.runtime.storage.keys import TENANT_DEFAULT
from holdfast_simulator.world import START_MS, SimulatorWorld
from tests.process.evidence import Log, evidence_of, place
from tests.process.journal import digest
from tests.process.ledger import Begun, attempt_of
from tests.process.plan import Call, calls_of, make_plan
from tests.process.roles import NOTHING, Answer
from tests.process.scene import Scene
from tests.process.site import KEYS, MODULE, compiled

TASK_MS: Final = 200
AGAIN_MS: Final = 700


@dataclass
class Rehearsal:
    """Every task takes a fifth of a second, and each is begun by a process of its own."""

    deployment: Deployment = field(
        default_factory=lambda: Deployment.from_modules([MODULE], compiled)
    )
    ledger: list[Begun] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    _pids: count[int] = field(default_factory=lambda: count(100))

    @cached_property
    def world(self) -> SimulatorWorld:
        programs = self.deployment.programs()
        return SimulatorWorld(self.deployment.setting(programs, lambda: KEYS), self._run_task)

    @cached_property
    def front(self) -> Any:
        return self.deployment.front(self.deployment.programs(), KEYS)

    def _run_task(self, effect: RunTask) -> TaskResult:
        attempt = attempt_of(effect.run, effect.entry, effect.attempt)
        self.ledger.append(Begun(attempt, next(self._pids), self.world.now_ms / 1_000))
        self.world.now_ms += TASK_MS
        return self.deployment.run_task(effect)

    def play(self, executions: int, seconds: float, seed: int) -> Scene:
        """Return the results of the plan of that seed, its last fault at the very end."""
        for call in calls_of(make_plan(executions, seconds, seed)):
            self._later(call, int(call.at_seconds * 1_000))
        self.world.run()
        return self._scene()

    def _later(self, call: Call, after_ms: int) -> None:
        self.world.at(START_MS + after_ms, partial(self._call, call))

    def _call(self, call: Call) -> None:
        told = self._answer_to(call)
        if told is None:
            self._later(call, self.world.now_ms - START_MS + AGAIN_MS)
        else:
            self.answers.append(Answer(call.key, self.world.now_ms / 1_000, told))

    def _answer_to(self, call: Call) -> str | None:
        name, request = call.action.name, call.action.request
        match call.action.kind:
            case "start":
                begun = self._ask(self.front.start(TENANT_DEFAULT, request, os.urandom(8)))
                return str(begun["execution"])
            case "event":
                self._ask(self.front.event(TENANT_DEFAULT, request, os.urandom(8)))
            case "stop":
                try:
                    self._ask(self.front.stop(TENANT_DEFAULT, name, request, os.urandom(8)))
                except RequestError:
                    return None
            case "answer":
                shown = self._ask(self.front.describe(TENANT_DEFAULT, name))
                tokens = [wait["token"] for wait in shown["waits"] if "token" in wait]
                if not tokens:
                    return None
                self._ask(self.front.answer(TENANT_DEFAULT, {"token": tokens[0], **request}))
        return NOTHING

    def _ask(self, handler: Any) -> Any:
        return self.world.call(handler)

    def _scene(self) -> Scene:
        executions = self._items("executions")
        found = evidence_of(executions, self._items("mail"))
        records = [
            (place(item), record)
            for log in found.logs.values()
            for item, record in zip(log.items, log.records, strict=True)
        ]
        return Scene(
            found,
            {where: record.at_ms / 1_000 for where, record in records},
            {place(item): digest(item) for item in executions},
            {log.run: 1 for log in found.logs.values()},
            tuple(self.ledger),
            tuple(self.answers),
            (),
            self.world.now_ms / 1_000,
        )

    def _items(self, table: TableName) -> list[Item]:
        return [dict(item) for item in self.world.services.items(table)]


# -- damage ----------------------------------------------------------------------------------------


def of_workflow(scene: Scene, workflow: str) -> Log:
    """Return the first root of it."""
    roots = (log for run, log in scene.found.logs.items() if "." not in run)
    return next(log for log in roots if log.state.workflow == workflow)


def with_log(scene: Scene, log: Log) -> Scene:
    return with_logs(scene, {**scene.found.logs, log.run: log})


def with_logs(scene: Scene, logs: dict[str, Log]) -> Scene:
    return replace(scene, found=replace(scene.found, logs=logs))


def with_events(log: Log, change: Any) -> Log:
    """`change` gives for each event those that are there in its place."""

    def changed(events: tuple[Event, ...]) -> tuple[Event, ...]:
        return tuple(new for event in events for new in change(event))

    records = tuple(replace(record, events=changed(record.events)) for record in log.records)
    return replace(log, records=records)
