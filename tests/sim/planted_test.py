"""Each planted bug is caught, by the invariants that it breaks."""

from __future__ import annotations

import pytest

from tests.sim.planted.kit import Planted, require_caught
from tests.sim.planted.protocol import PLANTED as PROTOCOL

ALL = (*PROTOCOL,)


@pytest.mark.parametrize("planted", ALL, ids=lambda planted: planted.name)
def test_it_is_caught(planted: Planted) -> None:
    require_caught(planted)
