"""What each partition takes in each second: `uv run python benchmarks/load.py`.

A thirty-second of a stack for 16,000 starts a second takes its part of 10,000 starts a second, for
a minute, with one wait of three days each. The table says how many write units a second the
partitions of each kind take in a stack that has run for days, and how late the timers are.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from holdfast_simulator.flow import START_MS
from holdfast_simulator.load import LoadWorld, Slice, Steady

RATE: Final = 10_000
SPREAD: Final = 4
SECONDS: Final = 60
DAY_MS: Final = 86_400_000
WAIT_MS: Final = 3 * DAY_MS

KINDS: Final = {
    "mail: due rows": "~due#",
    "mail: rows of starts": "~start#",
    "list: open": "default##open#",
    "list: done": "default##done#",
}


@dataclass(frozen=True, slots=True)
class Row:
    """The partitions of one kind: how many, and the write units a second of the busiest one."""

    partitions: int
    mean: float
    peak: int


def _work(**follow: Any) -> dict[str, Any]:
    arguments = "{% $states.context.Execution.Input %}"
    task = {"Type": "Task", "Resource": "holdfast:task:work", "Arguments": arguments}
    return {**task, "TimeoutSeconds": 30, **follow}


THREE_DAYS: Final = {
    "QueryLanguage": "JSONata",
    "StartAt": "0",
    "States": {
        "0": _work(Next="nap"),
        "nap": {"Type": "Wait", "Seconds": WAIT_MS // 1_000, "Next": "last"},
        "last": _work(End=True),
    },
}


def played(part: Slice, seconds: int) -> LoadWorld:
    """Return the world after all executions of some seconds have ended."""
    world = LoadWorld(THREE_DAYS, part, seed=1)
    world.start_for(seconds)
    world.run(START_MS + WAIT_MS + 12 * DAY_MS)
    return world


def rows_of(world: LoadWorld) -> dict[str, Row]:
    steady, found = Steady.of(world), {}
    for kind, prefix in KINDS.items():
        partitions = steady.seconds(prefix).values()
        mean = max(sum(units) for units in partitions) / SECONDS
        found[kind] = Row(len(partitions), mean, max(map(max, partitions)))
    return found


def late_ms(world: LoadWorld) -> list[int]:
    """Return by how much each timer was late: the task after it began so long after its time."""
    begun = defaultdict(list)
    for one in world.task_runs:
        begun[one.began.run].append(one)
    return [last.began.at_ms - int(first.ended_ms or 0) - WAIT_MS for first, last in begun.values()]


def main() -> None:
    world = played(Slice(RATE, SPREAD, slices=32), SECONDS)
    late = sorted(late_ms(world))
    print(f"{len(world.works):,} executions, {len(world.open_runs())} open")
    print("throttled requests:", sum(world.services.refused.values()))
    print(f"timers late by {late[0] / 1_000:.1f} to {late[-1] / 1_000:.1f} s")
    print("| of the busiest partition | partitions | mean | busiest second |")
    print("|---|---|---|---|")
    for kind, row in rows_of(world).items():
        print(f"| {kind} | {row.partitions} | {row.mean:,.0f} | {row.peak:,} |")


if __name__ == "__main__":
    main()
