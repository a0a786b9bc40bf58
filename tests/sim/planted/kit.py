"""Planted bugs: each is patched in, and must be caught by schedules that are clean without it.

A bug comes with the programs and the faults that can show it: `schedules` are tried in their order
until one is violated. Written tapes come first where a schedule is aimed by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from holdfast_simulator import swarm
from holdfast_simulator.runner import Deployed, ScheduleResult, play
from holdfast_simulator.scenarios import AttemptOutcome, Brought, Scenario, corpus
from holdfast_simulator.schedule import DrawnChoice, DrawnTape, WrittenTape
from holdfast_simulator.swarm import RATES_MAX, Swarm

Patch = pytest.MonkeyPatch

CORPUS = {one.name: one for one in corpus()}
#: A bug that lives longer than this is not caught.
SCHEDULES_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Planted:
    """One planted bug. `name` describes the wrong behaviour; `plant` causes it. `caught_by`:
    numbers of the invariants one of which must be violated. `rates`: the faults that matter, at
    these rates; None: all, as drawn. `tapes` are tried before any seed, and `seed` before all other
    seeds: it is one that showed a rare bug.
    """

    name: str
    plant: Callable[[Patch], Any]
    caught_by: frozenset[str]
    scenario: Scenario
    rates: dict[str, float] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    tapes: Sequence[Sequence[DrawnChoice]] = ()
    seed: int = 0

    def schedules(self, first_seed: int = 0) -> Iterator[Callable[[], ScheduleResult]]:
        deployed = Deployed(self.scenario)
        for tape in self.tapes:
            chosen = replace(swarm.Swarm(safety_ms=10**9), **self.settings)
            yield partial(_written, deployed, chosen, tape)
        seeds = range(first_seed, first_seed + SCHEDULES_MAX)
        for seed in dict.fromkeys((self.seed, *seeds)):
            chosen = replace(self._swarm(seed), **self.settings)
            yield partial(_drawn, deployed, chosen, seed)

    def _swarm(self, seed: int) -> Swarm:
        # Only the bugs of archives and forks need them, and they make each schedule slower.
        drawn = replace(swarm.drawn(seed), archives=False, fork_percent=0, bulk_percent=0)
        if self.rates is None:
            return drawn
        assert self.rates.keys() <= RATES_MAX.keys(), f"no such fault: {self.rates}"
        return replace(drawn, rates=self.rates, safety_ms=max(drawn.safety_ms, 200_000))


def _written(deployed: Deployed, chosen: Swarm, tape: Sequence[DrawnChoice]) -> ScheduleResult:
    return play(deployed, chosen, WrittenTape(tape))


def _drawn(deployed: Deployed, chosen: Swarm, seed: int) -> ScheduleResult:
    return play(deployed, chosen, DrawnTape(seed))


def require_caught(planted: Planted, first_seed: int = 0) -> int:
    """Return how many schedules it took. The one that shows the bug must be clean without it."""
    for number, schedule in enumerate(planted.schedules(first_seed), start=1):
        with pytest.MonkeyPatch.context() as patch:
            planted.plant(patch)
            result = schedule()
        # A refusal by the engine itself proves nothing about the invariants.
        found = {one.invariant for one in result.violations} - ({"code"} - planted.caught_by)
        if not found:
            continue
        print(f"{planted.name}: schedule {number}: {result.violations[0]}")
        assert found & planted.caught_by, (
            f"{planted.name}: caught by {found}, meant for {planted.caught_by}"
        )
        clean = schedule()
        assert not clean.violations, f"without the bug: {clean.violations}"
        return number
    raise AssertionError(f"{planted.name}: survived {SCHEDULES_MAX} schedules")


__all__ = ["CORPUS", "AttemptOutcome", "Brought", "Patch", "Planted", "Scenario", "require_caught"]
