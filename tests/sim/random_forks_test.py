"""Forks of random machines: from each step of the main line, to the end that the origin had."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.core.forking import entries
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast_simulator.generator import Generator
from holdfast_simulator.invariants import StoredHistory
from tests.builders import Shop
from tests.unit.pausing_test import settle

_WORDS = {"reason": "drawn", "by": "operator"}
_END_SECONDS = 100_000
#: The time of an execution and of its blocks begins anew in a fork: the end may be another one.
_TIMED = {"ExecutionTimedOut", "DeadlinePassed", "Stopping"}


def fork_everywhere(seed: int) -> int:
    """Return the number of forks. A task of one name has the same outcome each time."""
    random = Random(seed)
    broken = {name for name in map(str, range(200)) if random.random() < 0.15}

    def work(effect: RunTask) -> TaskSucceeded | TaskFailed:
        is_broken = str(sum(effect.name.encode()) % 200) in broken
        return TaskFailed("Broken", "why") if is_broken else TaskSucceeded(len(effect.name))

    shop = Shop(Generator(random).machine(), work)
    run = shop.start({"n": seed})
    settle(shop, _END_SECONDS)
    history = shop.history(run)
    forks = 0
    if any(event.type in _TIMED for event in history.events):
        return 0
    for step, place in entries(history.events).items():
        if any(event.type == "Cancelled" for event in history.events[:place]):
            continue  # the step may be one of an undo, which is not forked
        request = {"step": step, **_WORDS}
        chance = random.randbytes(8)
        told = shop.insist(lambda: shop.front.fork("default", run, request, chance))  # noqa: B023
        settle(shop, _END_SECONDS)
        assert _end(shop.history(told["execution"])) == _end(history), step
        forks += 1
    assert shop.world.faults == []
    return forks


def _end(history: StoredHistory) -> tuple[object, ...]:
    state = history.state
    return state.status, state.output, state.error


@pytest.mark.parametrize("first", [0, 15])
def test_a_fork_ends_as_its_origin(first: int) -> None:
    forks = 0
    for seed in range(first, first + 15):
        print(f"seed {seed}")
        forks += fork_everywhere(seed)
    assert forks >= 20


@pytest.mark.slow
def test_the_forks_of_1000_random_machines_end_as_their_origins() -> None:
    for seed in range(1_000):
        print(f"seed {seed}")
        fork_everywhere(seed)
