"""Fixtures and settings for all tests."""

from __future__ import annotations

import gc
import itertools
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.asl.jsonata import values

#: New objects until the next collection of garbage. Python's number is for programs with little
#: memory: with it, the collections take a tenth of the time of all tests.
GARBAGE_OBJECTS = 50_000


#: Numbers the folders of the tests.
_FOLDERS = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Collect no garbage while tests are collected: nearly all objects stay until the end."""
    gc.disable()
    if hasattr(config, "workerinput"):
        from tests.scheduler import report_less

        report_less(config)


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
    if "hypothesis" in sys.modules:
        # The first random test of a process looks through all objects for references to its
        # generator. Here they are out of its way.
        from hypothesis.internal.entropy import deterministic_PRNG

        with deterministic_PRNG():
            pass
    gc.set_threshold(GARBAGE_OBJECTS)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Report what the last tests lost in cycles, once. At its end, pytest looks five times through
    all that is not frozen.
    """
    gc.collect(1)
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Make the scheduler that `--dist loadgroup` stands for."""
    from tests.scheduler import FileScheduling

    return FileScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(autouse=True, scope="module")
def _no_clock(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove JSONata's clock, so that only its budget counts, on slow machines too. The clock is
    tested in security.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "security" not in request.path.parts:
            patch.setattr(values, "SECONDS_MAX", math.inf)
        yield


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the test's folder. pytest's own fixture reads the names of all earlier folders for the
    next number, and keeps a link to the newest folder of each name.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{next(_FOLDERS)}"
    folder.mkdir(mode=0o700)
    return folder
