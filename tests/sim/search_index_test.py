"""I23 on orders with attributes: each single fault at each effect of a quiet schedule."""

from __future__ import annotations

import pytest

from holdfast_simulator import levels
from holdfast_simulator.runner import Deployed, play
from holdfast_simulator.scenarios import Scenario
from holdfast_simulator.schedule import WrittenTape
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
