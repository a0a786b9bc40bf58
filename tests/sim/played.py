"""A scenario played through the real worker without faults, and the reference's prediction."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
from collections.abc import Iterator
from typing import Any

from holdfast.asl.parsing.parse import definition_hash
from holdfast.errors import RequestError
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.runtime.child_workflows import Untyped, Workflows
from holdfast.runtime.commands.api import Front
from holdfast.runtime.commands.tokens import require_token
from holdfast.runtime.effects import (
    Effect,
    Put,
    PutIfAbsent,
    RunTask,
    TaskFailed,
    TaskResult,
)
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.worker.config import WorkerConfig
from holdfast_simulator import pollers
from holdfast_simulator.histories import StoredHistory, histories
from holdfast_simulator.jobs import Jobs
from holdfast_simulator.rulings import RuledEnd, Ruling, ended, rulings_of
from holdfast_simulator.scenarios import AttemptOutcome, Brought, Scenario, offered_in
from holdfast_simulator.world import SimulatorWorld, When
from tests.builders import KEYS, AnyTypes

_TENANT = "default"


class Played:
    """One played scenario. `stop_after_seconds`: the time of a stop of the started execution."""

    def __init__(self, scenario: Scenario, stop_after_seconds: float | None = None) -> None:
        self.scenario = scenario
        events = {"events": {one.event: "m:Data" for one in scenario.events}}
        known = {
            name: Definition(machine, events, definition_hash(machine))
            for name, machine in scenario.machines.items()
        }
        programs = Programs()
        for definition in known.values():
            programs.add(definition)
        self.front = Front(programs, known, AnyTypes(), KEYS)
        workflows = Workflows(known, Untyped())
        setting = WorkerConfig(programs, lambda *_: True, lambda: KEYS, None, workflows)
        self.world = SimulatorWorld(setting, self._work, self._note)
        self._jobs = Jobs(scenario, lambda: self.world.now_ms)
        self._asks = ".waitForTaskToken" in json.dumps(dict(scenario.machines))
        self.changed: set[str] = set()
        self.asked: set[tuple[str, int, int]] = set()
        self._numbers = itertools.count()
        self._play(stop_after_seconds)

    def _play(self, stop_after_seconds: float | None) -> None:
        started_ms = self.world.now_ms
        for activity in pollers.activities_of(self.scenario.machines):
            self.world.call(pollers.create(self.front, _TENANT, activity))
        request = {"workflow": self.scenario.started, "input": self.scenario.input, "name": "one"}
        self.root = str(self._call("start", request, self._chance())["execution"])
        for brought in self.scenario.events:
            at_ms = started_ms + int(brought.after_seconds * 1_000)
            self.world.at(at_ms, functools.partial(self._bring, brought))
        if stop_after_seconds is not None:
            at_ms = started_ms + int(stop_after_seconds * 1_000)
            self.world.at(at_ms, lambda: self._call("stop", self.root, {}, self._chance()))
        while (next_ms := self.world._next_ms()) is not None:
            self.world.run(until_ms=next_ms)
            self._answer()
            if self.world.now_ms - started_ms > 400 * 86_400_000:
                return

    def _chance(self) -> bytes:
        return next(self._numbers).to_bytes(8)

    def _call(self, door: str, *arguments: Any) -> Any:
        return self.world.call(getattr(self.front, door)(_TENANT, *arguments))

    def _bring(self, brought: Brought) -> None:
        request = {"name": brought.event, "key": brought.key}
        request |= {"data": brought.data, "id": brought.id}  # type: ignore[dict-item]
        failure = {"error": brought.error, "cause": brought.cause}
        request |= {name: text for name, text in failure.items() if text is not None}
        self._call("event", request, self._chance())

    def _work(self, effect: RunTask) -> TaskResult:
        outcome = self._jobs.outcome(effect)
        if self.world.now_ms + outcome.seconds * 1_000 > effect.deadline_ms:
            return TaskFailed("States.Timeout", None)
        return self._jobs.result(effect)

    # -- answers -----------------------------------------------------------------------------------

    def _note(self, _world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "after" and isinstance(effect, PutIfAbsent) and effect.table == "executions":
            self.changed.add(str(effect.item["pk"]).partition("#")[2])
        offer = offered_in(str(effect.item["pk"])) if isinstance(effect, Put) else None
        if when == "after" and isinstance(effect, Put) and offer is not None:
            poll = functools.partial(self._poll, offer[1])
            at_ms = int(str(effect.item["sk"]).partition("#")[0])
            is_retry = int(effect.item["attempt"]) > 1
            self.world.at(at_ms + (2 * CLOCK_ERROR_MS if is_retry else 0), poll)  # R15

    # -- activities --------------------------------------------------------------------------------

    def _poll(self, activity: str) -> None:
        """Whatever is offered is taken as soon as it may be, and done in its time."""
        if not self.world.perform(pollers.offers(_TENANT, activity)):
            return  # offered twice, and taken
        taken = self.world.call(pollers.poll(self.front, _TENANT, activity, self._chance()))
        token = taken["taskToken"]
        attempt = require_token(token, KEYS, _TENANT, 0).attempt
        outcome = self.scenario.outcome(activity, attempt)
        said = pollers.answer_of(activity, token, outcome, taken["input"])
        at_ms = self.world.now_ms + int(outcome.seconds * 1_000)
        self.world.at(at_ms, functools.partial(self._say, said))

    def _say(self, said: dict[str, Any]) -> None:
        self.world.call(pollers.answer(self.front, _TENANT, said))

    def _answer(self) -> None:
        """Schedule an answer to each new question after its thinking time."""
        changed = sorted(self.changed) if self._asks else []
        self.changed.clear()
        for run in changed:
            for wait in self._call("describe", run)["waits"]:
                if "token" in wait:
                    self._ask(wait["state"], wait["token"])

    def _ask(self, state_name: str, text: str) -> None:
        token = require_token(text, KEYS, _TENANT, 0)  # The API reports an expired time
        place = (token.run, token.entry, token.attempt)
        if place in self.asked:
            return
        self.asked.add(place)
        answer = self.scenario.answer(state_name)
        at_ms = self.world.now_ms + int(answer.seconds * 1_000)
        self.world.at(at_ms, functools.partial(self._tell, text, answer))

    def _tell(self, token: str, answer: AttemptOutcome) -> None:
        request: dict[str, Any] = {"output": answer.output}
        if answer.error is not None:
            request = {"error": answer.error, "cause": answer.cause or ""}
        # The API refuses an answer that comes too late.
        with contextlib.suppress(RequestError):
            self._call("answer", {"token": token, **request})

    # -- results -----------------------------------------------------------------------------------

    @property
    def histories(self) -> list[StoredHistory]:
        return histories(self.world.services)

    def rulings(self) -> dict[str, Ruling]:
        return rulings_of(self.histories)

    def ends(self) -> Iterator[tuple[Ruling, RuledEnd]]:
        """Return for each execution its recorded decisions and its end."""
        rulings = self.rulings()
        for history in self.histories:
            yield rulings[history.run], ended(history.events)
