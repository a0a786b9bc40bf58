"""A graph through the real handlers, and workers that die: each step once, after those it needs."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from holdfast import Dag, dag, step, task
from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment
from holdfast.limits import TAKEOVERS_MAX
from holdfast_simulator.invariants import StoredHistory, check, histories, lost
from holdfast_simulator.world import (
    CrashAt,
    Hook,
    Killed,
    RandomCrashes,
    SimulatorWorld,
    When,
    no_faults,
)
from tests.builders import CHANCE, KEYS
from tests.thorough import IS_THOROUGH, some

TENANT = "default"


@task
def extract(day: str) -> list[int]:
    return [len(day), 2]


@task
def lint(day: str) -> list[list[int]]:
    return [[len(day)], []]


@task
def clean(extract: list[int], limit: int = 1) -> list[int]:
    return extract[:limit]


@task
def deploy(clean: list[int], lint: list[list[int]]) -> str:
    return f"{clean} {lint}"


@task
def report(clean: list[int], extract: list[int]) -> int:
    return len(clean) + len(extract)


#: `deploy` waits for two, `report` for one of them alone.
release: Dag = dag(
    "release",
    step("deploy", deploy, depends_on=["clean", "lint"]),
    step("report", report, depends_on=["clean", "extract"]),
    step("clean", clean, depends_on=["extract"]),
    step("extract", extract),
    step("lint", lint),
)
OUTPUT = {"deploy": "[6] [[6], []]", "report": 3}


def _compiled(workflow: Any) -> tuple[Any, dict[str, Any]]:
    compiled = compile_workflow(workflow)
    return compiled.asl, json.loads(compiled.map_text)


@cache
def deployment() -> Deployment:
    return Deployment.from_modules([__name__], _compiled)


def released(hook: Hook) -> tuple[SimulatorWorld, StoredHistory]:
    """The world after all that happens, and the one history in it."""
    programs = deployment().programs()
    front = deployment().front(programs, KEYS)
    world = SimulatorWorld(
        deployment().setting(programs, lambda: KEYS), deployment().run_task, hook
    )
    given = {"workflow": "release", "name": "r1", "input": {"day": "monday"}}
    for _ in range(20):
        try:
            world.call(front.start(TENANT, given, CHANCE))
        except Killed:
            world.kills += 1
        else:
            break
    world.run()
    [history] = histories(world)
    return world, history


def assert_whole(world: SimulatorWorld, history: StoredHistory, note: object = None) -> None:
    assert history.state.output == OUTPUT, note
    entered = [
        found.details["name"] for found in history.events if found.type == "TaskStateEntered"
    ]
    assert sorted(entered) == ["clean", "deploy", "extract", "lint", "report"], note
    exited = [found.details["name"] for found in history.events if found.type == "TaskStateExited"]
    assert exited.index("extract") < exited.index("clean") < exited.index("report"), note
    assert (check(world), lost(world)) == ([], []), note


def test_a_graph_runs_as_an_execution() -> None:
    world, history = released(no_faults)
    assert_whole(world, history)
    assert release(day="monday") == OUTPUT


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_crash_at_any_effect_changes_nothing(when: When) -> None:
    count = CrashAt(None, when)
    released(count)
    for number in some(count.numbers):
        world, history = released(CrashAt(number, when))
        assert world.kills == 1
        assert_whole(world, history, number)


def test_crashes_at_random_change_nothing() -> None:
    """Few enough of them: an execution that loses one more worker in a row fails rightly."""
    kills = 0
    for seed in some(range(40)):
        print(f"seed {seed}")
        world, history = released(RandomCrashes(seed, chance=0.05, crashes_max=TAKEOVERS_MAX))
        assert_whole(world, history, seed)
        kills += world.kills
    assert kills > (40 if IS_THOROUGH else 4)
