"""The pytest plugin: the fixtures `world` and `check_workflow`, and the option for the number of
examples.

pytest loads this module in every run, so it imports nothing of Holdfast until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from holdfast.testing import World


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("holdfast", "Holdfast workflows")
    group.addoption(
        "--holdfast-examples",
        type=int,
        default=100,
        help="how many generated worlds the fixture check_workflow runs a workflow in",
    )
    group.addoption(
        "--holdfast-seed",
        type=int,
        default=None,
        help="the seed of the generated worlds, as a failure printed it",
    )


@pytest.fixture
def world() -> Callable[..., World]:
    """Return `holdfast.testing.World`, which is imported here."""
    from holdfast.testing import World  # noqa: PLC0415

    return World


@pytest.fixture
def check_workflow(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return `holdfast.testing.check_workflow` with the examples and the seed of the command
    line.
    """
    from holdfast.testing import check_workflow  # noqa: PLC0415

    return partial(
        check_workflow,
        examples=request.config.getoption("--holdfast-examples"),
        seed=request.config.getoption("--holdfast-seed"),
    )
