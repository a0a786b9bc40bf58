"""NamedTuples, growing lists of tuples, enum keys and computed steps, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing import World, real
from tests.unit.dsl_kit import loaded

SOURCE = """
from __future__ import annotations
from enum import StrEnum
from typing import NamedTuple
from holdfast import task, workflow

class Spot(NamedTuple):
    x: int
    y: int = 2
    tags: list[str] = []

class Colour(StrEnum):
    RED = "red"

@task
def moved(spot: Spot) -> Spot:
    return Spot(spot.x + 1, spot.y)

@workflow
def flow(names: list[str], n: int, k: int) -> str:
    history: list[tuple[str, str]] = []
    for name in names:
        history.append(("user", name))
        history.append((name, "bot"))
    text = ""
    for role, said in history:
        text += role + said
    first, _ = history[0]
    spot = moved(Spot(n, tags=["a"]))
    other = Spot(x=spot.x + spot.y)
    counts = {Colour.RED: n}
    counts[Colour.RED] += 1
    total = counts["red"] if Colour.RED in counts else 0
    for i in range(n, 20, k):
        total += i
    return f"{text} {first} {other.x} {len(other.tags)} {total} {len([i for i in range(20, n, k)])}"
"""


@pytest.mark.parametrize("k", [3, -2, 0])
@pytest.mark.parametrize("n", [1, 25])
def test_a_workflow_of_such_values_runs_alike(n: int, k: int, tmp_path: Path) -> None:
    with loaded(tmp_path, SOURCE) as module:
        World(others=real).run_json(module.flow, {"names": ["a", "b"], "n": n, "k": k})
