from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast_simulator.rereading import remembered


@pytest.fixture(autouse=True)
def _read_once() -> Iterator[None]:
    """Workers of one world read each stored record once; what checks a log reads it anew."""
    with remembered():
        yield
