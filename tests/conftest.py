"""Fixtures and settings for all tests."""

from __future__ import annotations

import gc
import math

import pytest

from holdfast.asl.jsonata import values


def pytest_collection_finish() -> None:
    """Keep the modules and the 15,000 tests out of each garbage collection: they stay until the
    end, and to look through them takes a twentieth of the time of all tests.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove JSONata's clock, so that only its budget counts, on slow machines too. The clock is
    tested in security.
    """
    if "security" not in request.path.parts:
        monkeypatch.setattr(values, "SECONDS_MAX", math.inf)
