"""Generated programs: whatever the compiler accepts does what the same Python does.

`python -m tests.differential --programs N --seed S` runs as many as you like, shrinks what differs,
and prints how often each construct was drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.testing import Difference
from tests.differential.choices import Choices, shrunk
from tests.differential.programs import program
from tests.differential.runs import compare, failure, source_of
from tests.thorough import IS_THOROUGH

#: Parts of random programs are foolish (`[] [0]`); Python warns about some of them.
pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")
_STATEMENTS = (
    "assign branches change child compensate each fields for graph helper if leave match mutate"
    " publish race receive scope send start step task tool try wait while"
)


def _compare(seeds: range, folder: Path, runs: int, *, is_changed: bool = False) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        choices = Choices(seed)
        try:
            compare(choices, folder, runs, counts, is_changed=is_changed)
        except Difference as difference:
            again = Choices(given=choices.made)
            source = source_of(again, Counter(), is_changed=is_changed)
            raise AssertionError(f"seed {seed}:\n{source}\n{difference}") from None
    return counts


@pytest.mark.parametrize("first", [100, pytest.param(200, marks=pytest.mark.slow)])
def test_generated_programs_run_alike(first: int, tmp_path: Path) -> None:
    programs = 40 if IS_THOROUGH else 20
    counts = _compare(range(first, first + programs), tmp_path, runs=2)
    assert counts["accepted"] >= programs * 0.9, counts


def test_programs_with_small_changes_are_refused_or_run_alike(tmp_path: Path) -> None:
    counts = _compare(range(15, 30), tmp_path, runs=2, is_changed=True)
    assert counts["accepted"] >= 4, counts
    assert counts["refused"] >= 4, counts


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 3_000, 500))
def test_many_generated_programs_run_alike(first: int, tmp_path: Path) -> None:
    counts = _compare(range(first, first + 500), tmp_path, runs=3)
    assert counts["accepted"] >= 430, counts
    assert set(_STATEMENTS.split()) <= set(counts), counts


def test_a_seed_gives_the_same_program_again_and_so_do_its_choices() -> None:
    for seed in range(20):
        choices = Choices(seed)
        source = program(choices)
        assert program(Choices(seed)) == source
        assert program(Choices(given=choices.made)) == source


def test_a_failing_program_is_made_small() -> None:
    def fails(given: Sequence[int]) -> bool:
        return "while" in program(Choices(given=given))

    choices = next(found for found in map(Choices, range(100)) if "while" in program(found))
    smallest = shrunk(choices.made, fails, tries_max=5_000)
    assert len(smallest) <= min(16, len(choices.made) / 5)
    assert fails(smallest)


def test_a_difference_is_reported_by_its_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first program that is accepted.
    choices = next(
        found for found in map(Choices, range(20)) if not compare(found, tmp_path, 1, Counter())
    )
    assert failure(choices.made, tmp_path, 1) is None
    monkeypatch.setattr("holdfast.testing.world.difference", lambda *_, **__: "planted")
    assert failure(choices.made, tmp_path, 1) == (
        "Difference: flow compiled does not do what its Python does.\nplanted"
    )
