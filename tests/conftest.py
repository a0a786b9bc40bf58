"""What holds for all tests."""

from __future__ import annotations

import math

import pytest

from holdfast.asl.jsonata import values


@pytest.fixture(autouse=True)
def _no_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSONata has its budget alone, on slow machines too. What the clock is for is in security."""
    if "security" not in request.path.parts:
        monkeypatch.setattr(values, "SECONDS_MAX", math.inf)
