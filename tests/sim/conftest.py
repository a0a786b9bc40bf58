from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast_simulator.rereading import remembered


@pytest.fixture(autouse=True)
def _read_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a crash is tried at every effect, workers of one world read each stored record once.

    What checks a log reads it anew. Elsewhere keeping the readings costs more than it saves.
    """
    if "crash" not in request.node.name:
        yield
        return
    with remembered():
        yield
