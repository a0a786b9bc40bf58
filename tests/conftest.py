"""Fixtures and settings for all tests."""

from __future__ import annotations

import math

import pytest

from holdfast.asl.jsonata import values


@pytest.fixture(autouse=True)
def _no_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove JSONata's clock, so that only its budget counts, on slow machines too. The clock is
    tested in security.
    """
    if "security" not in request.path.parts:
        monkeypatch.setattr(values, "SECONDS_MAX", math.inf)
