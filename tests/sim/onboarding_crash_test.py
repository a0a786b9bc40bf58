"""A new colleague through the real handlers: a child, a race, a time-out, and workers that die."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from functools import cache, partial
from typing import Any

import pytest

from holdfast import days
from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast_simulator.invariants import StoredHistory, check, histories, lost
from holdfast_simulator.world import (
    START_MS,
    CrashAt,
    Hook,
    Killed,
    RandomCrashes,
    SimulatorWorld,
    When,
    no_faults,
)
from tests.builders import CHANCE, KEYS
from tests.thorough import some, stride

TENANT = "default"
DAY_MS = 86_400_000
STARTS_AT = datetime.fromtimestamp(START_MS // 1_000, tz=timezone.utc) + days(30)  # noqa: UP017
MODULES = ["statemachines.hr_onboarding", "statemachines.provision_accounts"]
HIRE = {
    "person": {"id": "p1", "name": "Grace Hopper", "team": "compilers"},
    "manager": "howard",
    "nominees": ["ada", "barbara", "edsger"],
    "systems": ["mail", "repositories"],
    "starts_at": STARTS_AT.isoformat(),
}
#: No question is answered, so every deadline except the contract's passes.
SIGNED = (2, "contract.signed", "contract-p1", {"signed_at": "today"})
WITHDREW = (20, "candidate.withdrew", "p1", {"reason": "another offer"})
TAKEN_BACK = ["take_laptop_back", "close_accounts", "void_contract"]


def _compiled(workflow: Any) -> tuple[Any, dict[str, Any]]:
    compiled = compile_workflow(workflow)
    return compiled.asl, json.loads(compiled.map_text)


@cache
def deployment() -> Deployment:
    return Deployment.from_modules(MODULES, _compiled)


class Company:
    """Callers try again until they get an answer."""

    def __init__(self, hook: Hook = no_faults) -> None:
        programs = deployment().programs()
        self.front = deployment().front(programs, KEYS)
        setting = deployment().setting(programs, lambda: KEYS)
        self.world = SimulatorWorld(setting, deployment().run_task, hook)

    def onboard(self, *events: tuple[int, str, str, Any]) -> StoredHistory:
        """Return the parent's history, after all that happens."""
        given = {"workflow": "hr_onboarding", "name": "p1", "input": {"hire": HIRE}}
        self._insist(lambda: self.front.start(TENANT, given, CHANCE))
        for day, name, key, data in events:
            detail = {"name": name, "key": key, "data": data}
            self.world.at(START_MS + day * DAY_MS, partial(self._send, f"e-{name}", detail))
        self.world.run()
        return next(found for found in histories(self.world) if "." not in found.run)

    def _send(self, event: str, detail: Any) -> None:
        self._insist(lambda: self.front.bus_event(TENANT, event, detail, CHANCE))

    def _insist(self, make: Any) -> None:
        for _ in range(20):
            try:
                self.world.call(make())
            except Killed:
                self.world.kills += 1
            else:
                return
        raise AssertionError("no answer in twenty tries")

    @property
    def children(self) -> list[StoredHistory]:
        return [history for history in histories(self.world) if "." in history.run]


def outcome(history: StoredHistory) -> Any:
    return history.state.output


def tasks_of(history: StoredHistory) -> list[str]:
    """The tasks that succeeded, in order."""
    ended = [event for event in history.events if event.type == "TaskSucceeded"]
    return [event.details["resource"].rpartition(":")[2] for event in ended]


def test_deadlines_run_out_and_the_first_day_comes() -> None:
    company = Company()
    parent = company.onboard(SIGNED)
    assert outcome(parent) == {
        "person_id": "p1",
        "status": "started",
        "reason": "",
        "laptop": "shelf-laptop-p1",
        "buddies": ["howard"],
    }
    assert [tasks_of(child) for child in company.children] == [["open_account", "open_account"]]
    assert tasks_of(parent)[-2:] == ["lend_laptop", "tell"]
    assert (check(company.world), lost(company.world)) == ([], [])


def test_a_withdrawal_takes_everything_back() -> None:
    company = Company()
    parent = company.onboard(SIGNED, WITHDREW)
    assert outcome(parent)["status"] == "withdrawn"
    assert tasks_of(parent)[-4:] == [*TAKEN_BACK, "tell"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", [stride(61, 151), pytest.param(1, marks=pytest.mark.slow)])
def test_one_crash_at_any_effect_changes_nothing(when: When, step: int) -> None:
    """In the quick run at every 151st effect of about eight hundred."""
    count = CrashAt(None, when)
    company = Company(count)
    parent = company.onboard(SIGNED, WITHDREW)
    expected = (outcome(parent), sorted(tasks_of(parent)))
    assert count.seen > 800

    for number in range(0, count.seen, step):
        company = Company(CrashAt(number, when))
        parent = company.onboard(SIGNED, WITHDREW)
        assert company.world.kills == 1
        assert (outcome(parent), sorted(tasks_of(parent))) == expected, number
        assert (check(company.world), lost(company.world)) == ([], []), number


def test_crashes_at_random_change_nothing() -> None:
    """At a higher chance, four workers in a row are lost in one task, and the execution fails."""
    kills = 0
    for seed in some(range(10)):
        print(f"seed {seed}")
        company = Company(RandomCrashes(seed, chance=0.015, crashes_max=30))
        assert outcome(company.onboard(SIGNED, WITHDREW))["status"] == "withdrawn"
        assert (check(company.world), lost(company.world)) == ([], [])
        kills += company.world.kills
    assert kills > 20
