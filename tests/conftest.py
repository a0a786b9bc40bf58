"""Fixtures and settings for all tests."""

from __future__ import annotations

import gc
import math
import sys

import pytest

from holdfast.asl.jsonata import values

#: New objects until the next collection of garbage. Python's number is for programs with little
#: memory: with it, the collections take a tenth of the time of all tests.
GARBAGE_OBJECTS = 50_000


def pytest_configure() -> None:
    """Collect no garbage while tests are collected: nearly all objects stay until the end."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems() -> None:
    """Keep Hypothesis from parsing all modules of the project, in each worker, for constants that
    it may draw: it takes seconds.
    """
    if "hypothesis" in sys.modules:
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_finish() -> None:
    """Keep the modules and the tests out of each collection of garbage: they stay until the end,
    and to look through them takes a twentieth of the time of all tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_OBJECTS)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Report what is lost in cycles, once. At its end, pytest looks five times through all that is
    not frozen.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Make the scheduler that `--dist loadgroup` stands for."""
    from tests.scheduler import FileScheduling

    return FileScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(autouse=True)
def _no_clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove JSONata's clock, so that only its budget counts, on slow machines too. The clock is
    tested in security.
    """
    if "security" not in request.path.parts:
        monkeypatch.setattr(values, "SECONDS_MAX", math.inf)
