"""Each planted bug is caught, by the invariants that it breaks."""

from __future__ import annotations

import pytest

from tests.sim.planted.ends import PLANTED as ENDS
from tests.sim.planted.kit import Planted, require_caught
from tests.sim.planted.outside import PLANTED as OUTSIDE
from tests.sim.planted.protocol import PLANTED as PROTOCOL
from tests.sim.planted.reading import PLANTED as READING
from tests.sim.planted.reasoned import PLANTED as REASONED
from tests.sim.planted.recovery import PLANTED as RECOVERY
from tests.sim.planted.timing import PLANTED as TIMING

ALL = (*PROTOCOL, *READING, *REASONED, *OUTSIDE, *ENDS, *TIMING, *RECOVERY)


@pytest.mark.parametrize("planted", ALL, ids=lambda planted: planted.name)
def test_it_is_caught(planted: Planted) -> None:
    require_caught(planted)
