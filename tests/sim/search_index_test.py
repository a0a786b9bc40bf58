"""I23 on orders with attributes: each single fault at each effect of a quiet schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.runtime import search_rows
from holdfast_simulator import levels, swarm
from holdfast_simulator.runner import Deployed, play
from holdfast_simulator.scenarios import Scenario
from holdfast_simulator.schedule import DrawnTape, WrittenTape
from tests.sim.planted.index import RESTING, SEARCHED


def violations(scenario: Scenario, kinds: tuple[str, ...], step: int) -> None:
    deployed = Deployed(scenario)
    faults = levels.faults_in(deployed, kinds)
    assert len(faults) > 40
    for choices in [(), *faults[::step]]:
        result = play(deployed, levels.EXHAUSTIVE, WrittenTape(choices))
        assert result.violations == (), choices


def test_no_crash_of_every_fourth_leaves_the_index_wrong() -> None:
    violations(SEARCHED, levels.CRASHES, 4)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [SEARCHED, RESTING], ids=lambda one: one.name)
def test_no_single_fault_leaves_the_index_wrong(scenario: Scenario) -> None:
    violations(scenario, levels.SINGLES, 1)


def drawn(seeds: range) -> set[str]:
    """Return the invariants that drawn schedules of the corpus with search attributes break."""
    noting = [one for one in levels.programs(None) if one.scenario.name.startswith("attributes")]
    assert len(noting) == 2
    return {
        violation.invariant
        for seed in seeds
        for program in noting
        for violation in play(program, swarm.drawn(seed), DrawnTape(seed)).violations
    }


def test_drawn_schedules_leave_the_attributes_of_the_corpus_right() -> None:
    assert drawn(range(3)) == set()


def test_drawn_schedules_catch_changes_that_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Iterator[Any]:
        yield from ()

    monkeypatch.setattr(search_rows, "_put_changes", nothing)
    assert drawn(range(3)) == {"I23"}
