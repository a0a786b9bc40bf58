"""Random machines with every extension through the real worker, stopped and killed at random."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.runtime.effects import RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast_simulator.generator import SECONDS_MAX, Generator
from holdfast_simulator.world import Hook, RandomCrashes, no_faults
from tests.builders import machine, wait_for
from tests.thorough import some
from tests.unit.child_kit import Family

#: Ends only by a stop: its caller has to stop it when it continues without it.
PATIENT = machine({"wait": wait_for("never")})
_END_MS = 60_000 * SECONDS_MAX


def play(seed: int, hook: Hook = no_faults) -> Family:
    random = Random(seed)
    failing = {number for number in range(200) if random.random() < 0.1}

    def work(effect: RunTask) -> TaskResult:
        return TaskFailed("Broken", "why") if effect.entry in failing else TaskSucceeded(1)

    outer = Generator(random, called=("inner", "patient")).machine()
    machines = {"outer": outer, "inner": Generator(random).machine(), "patient": PATIENT}
    family = Family(machines, work, hook)
    run = family.start()
    family.settle(random.randint(1, 3 * SECONDS_MAX))
    if random.random() < 0.5:
        family.stop(run)
    family.settle(_END_MS // 1_000)
    while not family.outer.state.is_ended:  # it waits for a child, perhaps in a shielded part
        family.stop(run)
        family.settle(_END_MS // 1_000)
    return family


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_child_that_its_parent_goes_on_without_is_stopped(first: int) -> None:
    for seed in some(range(first, first + 20)):
        print(f"seed {seed}")
        assert play(seed).is_sound()


def test_crashes_lose_nothing() -> None:
    for seed in some(range(40)):
        print(f"seed {seed}")
        family = play(seed, RandomCrashes(seed, chance=0.03, crashes_max=3))
        assert family.outer.state.is_ended
        assert all(child.state.is_ended for child in family.children)
        assert family.is_sound()
