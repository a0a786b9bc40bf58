"""How much of a long search a test takes.

Some tests try every place: a crash at each effect, hundreds of random documents. `./holdfast test`
takes a fixed part of them, so that it ends within four minutes. `.ci/check` sets
`HOLDFAST_TESTS=all`, and each test then takes every place.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

IS_THOROUGH: Final = os.environ.get("HOLDFAST_TESTS") == "all"
#: One of so many places is tried by default. The number is odd: if places of two kinds follow each
#: other in turn, both kinds are tried.
STEP: Final = 17


def some(places: Sequence[T]) -> Sequence[T]:
    """Return the places to try: one of `STEP`, or all of them in a thorough run."""
    return places if IS_THOROUGH else places[::STEP]


def examples(count: int) -> int:
    """Return how many random examples to try: one of `STEP`, or all of them in a thorough run."""
    return count if IS_THOROUGH else count // STEP


def stride(thorough: int, quick: int) -> int:
    """Return the distance between two places to try."""
    return thorough if IS_THOROUGH else quick


def worlds(count: int) -> int:
    """Return how many worlds or executions to run: a third, or all of them in a thorough run."""
    return count if IS_THOROUGH else count // 3
