"""Level 0 of the simulator: a crash before and after every effect of ten machines, and 2,000
random schedules. In parts, so that they run side by side; the slow tests have all but the first.
`python -m holdfast_simulator --level 0` runs the same.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

import pytest

from holdfast_simulator import levels, reports
from holdfast_simulator.levels import LEVELS
from tests.thorough import IS_THOROUGH, STEP

STATEMACHINES: Final = Path(__file__).parents[2] / "statemachines"
PARTS: Final = 20
#: The parts of the default run, one of twenty. The slow run has the others.
FAST: Final = {0}
LEVEL: Final = LEVELS[0]


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=[pytest.mark.slow] * (part not in FAST)) for part in range(PARTS)],
)
def test_no_invariant_is_violated_in_level_0(part: int) -> None:
    jobs = levels.jobs_of(LEVEL, 0, LEVEL.schedules, STATEMACHINES)
    stride = PARTS if IS_THOROUGH else PARTS * STEP
    total = levels.run(islice(jobs, part, None, stride), 1, reports.silent)
    found = [(name, result.violations[0]) for name, result in total.failures]
    assert found == []
    assert not total.violated


def test_level_0_has_ten_machines_and_two_thousand_schedules() -> None:
    assert len(LEVEL.of or ()) == 10
    assert LEVEL.schedules == 2_000
