"""Each planted bug is caught, by the invariants that it breaks."""

from __future__ import annotations

import pytest

from holdfast_simulator import invariants
from tests.sim.planted.archives import PLANTED as ARCHIVES
from tests.sim.planted.bulks import PLANTED as BULKS
from tests.sim.planted.deliveries import PLANTED as DELIVERIES
from tests.sim.planted.doors import PLANTED as DOORS
from tests.sim.planted.ends import PLANTED as ENDS
from tests.sim.planted.forks import PLANTED as FORKS
from tests.sim.planted.index import PLANTED as INDEX
from tests.sim.planted.kit import Planted, require_caught
from tests.sim.planted.outside import PLANTED as OUTSIDE
from tests.sim.planted.pauses import PLANTED as PAUSES
from tests.sim.planted.protocol import PLANTED as PROTOCOL
from tests.sim.planted.reading import PLANTED as READING
from tests.sim.planted.reasoned import PLANTED as REASONED
from tests.sim.planted.recovery import PLANTED as RECOVERY
from tests.sim.planted.rests import PLANTED as RESTS
from tests.sim.planted.skips import PLANTED as SKIPS
from tests.sim.planted.starts import PLANTED as STARTS
from tests.sim.planted.subsystems import PLANTED as SUBSYSTEMS
from tests.sim.planted.timing import PLANTED as TIMING
from tests.thorough import some

ALL = (
    *PROTOCOL,
    *READING,
    *REASONED,
    *OUTSIDE,
    *DOORS,
    *ENDS,
    *TIMING,
    *RECOVERY,
    *RESTS,
    *SUBSYSTEMS,
    *DELIVERIES,
    *PAUSES,
    *SKIPS,
    *INDEX,
    *STARTS,
    *ARCHIVES,
    *FORKS,
    *BULKS,
)


#: Bugs that take seconds to show, because the executions fail again and again for days.
SLOW = {"characters are taken for bytes", "there is no sweeper"}


def _slow(planted: Planted) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if planted.name in SLOW else []


@pytest.mark.parametrize(
    "planted", [pytest.param(one, id=one.name, marks=_slow(one)) for one in some(ALL)]
)
def test_it_is_caught(planted: Planted) -> None:
    require_caught(planted)


def test_each_invariant_has_a_bug_that_it_alone_has_to_catch() -> None:
    assert len(ALL) >= 60
    alone = {
        number for planted in ALL if len(planted.caught_by) == 1 for number in planted.caught_by
    }
    assert {one.number for one in invariants.ALL} - alone == set()
