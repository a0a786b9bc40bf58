"""The price of a poll, as docs/how-to/cookbook.md states it: of a condition, and in a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import pytest

from holdfast import Client
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

PROGRAM = """
from holdfast import days, minutes, sleep, task, timeout, wait_for_condition, workflow

NO, YES = [False] * 10, [True]
answers = []

@task
def is_ready() -> bool:
    return answers.pop(0)

@task
def ready() -> str | None:
    return "done" if answers.pop(0) else None

@workflow
def nothing() -> str:
    return "done"

@workflow
def looped() -> str:
    while not is_ready():
        sleep(minutes(5))
    return "done"

@workflow
def awaited() -> str:
    with timeout(days(3)):
        return wait_for_condition(ready, every=minutes(5))()
"""
POLLS = 10
SIX_HOURS_MS = 6 * 3_600_000


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with loaded(tmp_path_factory.mktemp("polls"), PROGRAM) as found:
        yield found


def write_units(module: ModuleType, workflow: str) -> float:
    module.answers[:] = [*module.NO, *module.YES]
    stack = MemoryStack(module.__name__)
    client = Client.of(stack.api)
    before = replace(stack.world.services.usage)
    client.start(workflow, {}, name="x")
    stack.world.run(until_ms=stack.world.now_ms + SIX_HOURS_MS)
    assert client.describe("x")["output"] == "done"
    return stack.world.services.usage.write_units - before.write_units


def test_a_poll_of_a_condition_costs_less_than_one_in_a_loop(module: ModuleType) -> None:
    nothing = write_units(module, "nothing")
    looped = write_units(module, "looped") - nothing
    awaited = write_units(module, "awaited") - nothing
    assert (looped / POLLS, awaited / POLLS) == (5.4, 3.5)
