"""The price of a poll, as docs/how-to/cookbook.md states it: as a retry, and in a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import pytest

from holdfast import Client
from tests.unit.client_kit import MemoryStack
from tests.unit.dsl_kit import loaded

PROGRAM = """
from holdfast import Retry, TaskError, days, minutes, sleep, task, timeout, workflow

class NotReady(TaskError): ...
NO, YES = [False] * 10, [True]
answers = []

@task
def is_ready() -> bool:
    return answers.pop(0)

@task(retry=Retry(max_attempts=20, interval=minutes(5), backoff=1.0, jitter=False, on=(NotReady,)))
def ready() -> str:
    if not answers.pop(0):
        raise NotReady()
    return "done"

@workflow
def nothing() -> str:
    return "done"

@workflow
def looped() -> str:
    while not is_ready():
        sleep(minutes(5))
    return "done"

@workflow
def retried() -> str:
    with timeout(days(3)):
        return ready()
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


def test_a_poll_by_a_retry_costs_less_than_one_in_a_loop(module: ModuleType) -> None:
    nothing = write_units(module, "nothing")
    looped = write_units(module, "looped") - nothing
    retried = write_units(module, "retried") - nothing
    assert (looped / POLLS, retried / POLLS) == (5.4, 3.5)
