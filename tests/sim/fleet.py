"""Hosts of several releases that serve one store, and the people who use it.

Each delivery and each sweep goes to one of the hosts, at random by a seed. A host knows the formats
of its release, and reads `~ctl` for itself, once a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final

from holdfast.asl.parsing.parse import definition_hash
from holdfast.errors import HoldfastError, RequestError
from holdfast.runtime.child_workflows import Untyped, Workflows
from holdfast.runtime.commands.api import Front
from holdfast.runtime.driver import run
from holdfast.runtime.effects import (
    Effect,
    PutIfAbsent,
    QueueName,
    RunTask,
    TaskFailed,
    TaskResult,
    TaskSucceeded,
)
from holdfast.runtime.storage import format_control
from holdfast.runtime.storage.definitions import Definition, Programs
from holdfast.runtime.storage.format_control import Control
from holdfast.runtime.storage.formats import Formats
from holdfast.runtime.worker.config import WorkerConfig
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants import check, histories, lost
from holdfast_simulator.queues import Received
from holdfast_simulator.scenarios import Scenario
from holdfast_simulator.world import Killed, SimulatorWorld, When
from tests.builders import KEYS, AnyTypes

RELEASE_1: Final = Formats(oldest=1, newest=1, asked=1)
RELEASE_2: Final = Formats(oldest=1, newest=2, asked=1)
RELEASE_3: Final = Formats(oldest=2, newest=3, asked=2)
TENANT: Final = "default"
#: Executions that wait longer are stopped; all end soon after.
PATIENCE_MS: Final = 40 * 86_400_000
_STOPS_MAX: Final = 4


class Fleet(SimulatorWorld):
    """`hosts` serve; `wrote` counts the records that each release has written, by its newest."""

    hosts: list[Control]
    draws: Random
    given_back: int = 0

    def install(self, releases: Iterable[Formats]) -> None:
        """Replaces every host by fresh ones: the processes of before are gone."""
        self.hosts = [Control(release) for release in releases]

    def deliver(self, received: Received, queue: QueueName) -> bool:
        release = self._take_turn()
        before = self._stored()
        is_done = super().deliver(received, queue)
        if release.asked > release.newest:
            assert not is_done
            assert self._stored() == before, "code of an older release has written something"
            self.given_back += 1
        return is_done

    def sweep(self) -> None:
        self._take_turn()
        super().sweep()

    def _take_turn(self) -> Formats:
        host = self.draws.choice(self.hosts)
        release: Formats = run(host.look(self.now_ms), self.services.perform)
        self.setting = replace(self.setting, formats=release)
        return release

    def _stored(self) -> list[object]:
        items = [self.services.items(table) for table in ("executions", "mail")]
        return [*items, sorted(self.services.blobs())]


class Company:
    """One scenario, started once, before hosts of `releases`.

    `at_commit` is called after the nth commit, from 1, of any execution; the worker that has made
    it may be killed there, by `Killed`.
    """

    def __init__(
        self,
        scenario: Scenario,
        releases: Iterable[Formats],
        at_commit: Callable[[Company, int], None] = lambda *_: None,
        seed: int = 0,
    ) -> None:
        self.scenario = scenario
        self.commits = 0
        self._at_commit = at_commit
        events = {"events": {one.event: "m:Data" for one in scenario.events}}
        known = {
            name: Definition(machine, events, definition_hash(machine))
            for name, machine in scenario.machines.items()
        }
        programs = Programs()
        for definition in known.values():
            programs.add(definition)
        workflows = Workflows(known, Untyped())
        setting = WorkerConfig(programs, lambda *_: True, lambda: KEYS, None, workflows)
        self.front = Front(programs, known, AnyTypes(), KEYS)
        self.fleet = Fleet(setting, self._work, self._count)
        self.fleet.draws = Random(seed)
        self.fleet.install(releases)
        self._chances = 0
        self._answered: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        request = {"workflow": self.scenario.started, "input": self.scenario.input, "name": "one"}
        self.call(self.front.start(TENANT, request, self._chance()))
        for brought in self.scenario.events:
            request = {"name": brought.event, "key": brought.key, "id": brought.id}
            request["data"] = brought.data
            at_ms = self.fleet.now_ms + int(brought.after_seconds * 1_000)
            self.fleet.at(at_ms, partial(self._bring, request))

    def _bring(self, request: dict[str, Any]) -> None:
        self.call(self.front.event(TENANT, request, self._chance()))

    def _chance(self) -> bytes:
        self._chances += 1
        return self._chances.to_bytes(8)

    def call(self, handler: Any) -> Any:
        return self.fleet.call(handler)

    def ask_for(self, number: int, release: Formats = RELEASE_2) -> Any:
        """Do the work of `holdfast format --set`."""
        return run(format_control.ask({"format": number}, release), self.fleet.services.perform)

    # -- what the hosts meet -----------------------------------------------------------------------

    def _count(self, _world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "after" and isinstance(effect, PutIfAbsent) and effect.table == "executions":
            self.commits += 1
            self._at_commit(self, self.commits)

    def _work(self, effect: RunTask) -> TaskResult:
        outcome = self.scenario.outcome(effect.name, effect.attempt)
        if outcome.error is not None:
            return TaskFailed(outcome.error, outcome.cause)
        return TaskSucceeded(outcome.output_for(effect.arguments))

    # -- going on ----------------------------------------------------------------------------------

    def finish(self) -> Company:
        """Answer all questions, and stop every execution without an end, until no event is left."""
        for _ in range(_STOPS_MAX):
            self.go_on(PATIENCE_MS)
            still_open = [found for found in self.histories if not found.state.is_ended]
            if not still_open:
                return self
            for found in still_open:
                self.call(self.front.stop(TENANT, found.run, {}, self._chance()))
        raise AssertionError("it goes on for ever")

    def go_on(self, milliseconds: int) -> None:
        until_ms = self.fleet.now_ms + milliseconds
        while (next_ms := self.fleet._next_ms()) is not None and next_ms <= until_ms:
            self.fleet.run(until_ms=next_ms)
            self._answer()
        self.fleet.now_ms = until_ms

    def _answer(self) -> None:
        if not self.scenario.answers:
            return
        for found in self.histories:
            if found.state.is_ended:
                continue
            for wait in self.call(self.front.describe(TENANT, found.run))["waits"]:
                if "token" in wait and wait["token"] not in self._answered:
                    self._answered.add(wait["token"])
                    answer = self.scenario.answer(wait["state"])
                    request: dict[str, Any] = {"token": wait["token"], "output": answer.output}
                    if answer.error is not None:
                        request = {"token": wait["token"], "error": answer.error}
                    with suppress(RequestError):
                        self.call(self.front.answer(TENANT, request))

    # -- results -----------------------------------------------------------------------------------

    @property
    def histories(self) -> list[StoredHistory]:
        return sorted(histories(self.fleet), key=lambda found: found.run)

    @property
    def formats(self) -> list[list[int]]:
        """The format of every record, execution by execution."""
        return [[int(item["f"]) for item in found.items] for found in self.histories]

    def story(self) -> list[tuple[str, list[tuple[str, Any]]]]:
        """Return the events of each execution, without the workers and the times."""
        return [
            (found.run, [(event.type, event.details) for event in found.events])
            for found in self.histories
        ]

    def agrees_with(self, other: Company) -> bool:
        """Return True when both have one story: all of it, or until the execution's time is over in
        one.

        A delay after a crash ends at a check. A release that moves executions to another format
        checks earlier, and may still be in time: both results keep the promise.
        """
        return all(
            run == its_run and told[:end] == its_told[:end]
            for (run, told), (its_run, its_told), end in zip(
                self.story(),
                other.story(),
                map(_time_over, self.histories, other.histories),
                strict=True,
            )
        )

    def is_sound(self) -> bool:
        faults = [fault for fault in self.fleet.faults if isinstance(fault, HoldfastError)]
        return (check(self.fleet), lost(self.fleet), faults) == ([], [], [])


def _time_over(*histories: StoredHistory) -> int | None:
    """Return the first event that says so in any of them."""
    said = (
        at
        for history in histories
        for at, event in enumerate(history.events)
        if event.type == "ExecutionTimedOut"
        or event.holdfast.get("stopping", {}).get("status") == "TIMED_OUT"
    )
    return min(said, default=None)


def stopped_after(
    number: int, releases: Iterable[Formats], asks_for: int | None = None
) -> Callable[[Company, int], None]:
    """Crash every process after this many commits; other `releases` take over."""

    def switch(company: Company, commits: int) -> None:
        if commits == number:
            company.fleet.install(releases)
            if asks_for is not None:
                company.ask_for(asks_for)
            raise Killed

    return switch
