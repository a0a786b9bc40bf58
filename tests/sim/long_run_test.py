"""An execution of a hundred thousand steps has the same cost per step at its end as at its
beginning.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import pytest

from holdfast.cost import item_bytes
from holdfast.runtime.effects import Effect, PutIfAbsent, RunTask, TaskSucceeded
from holdfast_simulator.invariants import check
from holdfast_simulator.world import SimulatorWorld, When
from tests.builders import Machine, Shop, call, machine

STEPS = 100_000
WINDOW = 1_000
ROUNDS = 3


def counting_loop(steps: int) -> Machine:
    """A task and a choice, again and again; the variables are a page of text."""
    return machine(
        {
            "begin": {
                "Type": "Pass",
                "Assign": {"n": 0, "notes": "{% $states.input.notes %}"},
                "Next": "work",
            },
            "work": call(
                "work",
                "again?",
                Arguments={"n": "{% $n %}"},
                Assign={"n": "{% $states.result.n %}"},
            ),
            "again?": {
                "Type": "Choice",
                "Choices": [{"Condition": f"{{% $n < {steps} %}}", "Next": "work"}],
                "Default": "done",
            },
            "done": {"Type": "Succeed", "Output": "{% $n %}"},
        }
    )


@dataclass(frozen=True, slots=True)
class Window:
    writes: int
    bytes: int
    cpu_seconds: float


class Meter:
    """Writes, bytes and CPU time between two steps."""

    def __init__(self) -> None:
        self.writes = self.bytes = 0
        self.windows: list[Window] = []
        self._last = (0, 0, time.process_time())

    def __call__(self, world: SimulatorWorld, effect: Effect, when: When) -> None:
        if when == "after" and isinstance(effect, PutIfAbsent) and effect.table == "executions":
            self.writes += 1
            self.bytes += item_bytes(effect.item)

    def close_window(self) -> None:
        writes, size, cpu_seconds = self._last
        self._last = (self.writes, self.bytes, time.process_time())
        self.windows.append(
            Window(self.writes - writes, self.bytes - size, self._last[2] - cpu_seconds)
        )


def _run(steps: int) -> tuple[Meter, Shop]:
    meter = Meter()

    def work(effect: RunTask) -> TaskSucceeded:
        done = effect.arguments["n"] + 1
        if done % WINDOW == 0:
            meter.close_window()
        return TaskSucceeded({"n": done})

    shop = Shop(counting_loop(steps), tasks=work, hook=meter)
    shop.start({"notes": ["a line of the notes that every step can see"] * 20})
    shop.world.run()
    return meter, shop


@pytest.mark.slow
def test_the_last_thousand_of_100_000_steps_cost_as_much_as_the_first() -> None:
    ratios = []
    for _ in range(ROUNDS):
        meter, _ = _run(STEPS)
        # The first window holds the start; the second is the first that is all steps.
        first, last = meter.windows[1], meter.windows[-1]
        assert abs(last.writes / first.writes - 1) <= 0.05
        assert abs(last.bytes / first.bytes - 1) <= 0.05
        ratios.append(last.cpu_seconds / first.cpu_seconds)
    print(f"CPU of the last window to the first: {[round(ratio, 3) for ratio in ratios]}")
    assert abs(statistics.median(ratios) - 1) <= 0.20


@pytest.mark.slow
def test_a_run_of_three_thousand_steps_writes_evenly_and_loads_from_its_snapshot() -> None:
    meter, shop = _run(3_000)

    # The first window closes before its last result is committed.
    assert [window.writes for window in meter.windows] == [WINDOW - 1, WINDOW, WINDOW]
    assert abs(meter.windows[2].bytes / meter.windows[1].bytes - 1) <= 0.05
    snapshots = [item for item in shop.world.services.items("executions") if "so" in item]
    assert len(snapshots) > 5
    assert check(shop.world) == []
