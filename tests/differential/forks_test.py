"""Generated programs: a fork at a step, and a skip with the same result, end as the origin."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from holdfast.core import forking
from tests.differential.choices import Choices
from tests.differential.forks import Differs, repeat_steps
from tests.differential.programs import program
from tests.thorough import IS_THOROUGH

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")


def _repeat(seeds: range, folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        choices = Choices(seed)
        try:
            repeat_steps(choices, folder, counts)
        except Differs as differs:
            source = program(Choices(given=choices.made))
            raise AssertionError(f"seed {seed}:\n{source}\n{differs}") from None
    print(counts)
    return counts


def test_forks_and_skips_of_generated_programs_end_as_their_origins(tmp_path: Path) -> None:
    programs = 20 if IS_THOROUGH else 8
    counts = _repeat(range(programs), tmp_path)
    assert counts["forks"] >= programs * 2, counts
    assert counts["skips"] >= programs, counts


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 2_200, 300))
def test_forks_and_skips_of_1000_generated_programs_end_as_their_origins(
    first: int, tmp_path: Path
) -> None:
    counts = _repeat(range(first, first + 300), tmp_path)
    assert counts["programs"] >= 250, counts


def test_a_fork_that_forgets_its_variables_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = forking._copied

    def copied(*given: object) -> object:
        for event in real(*given):  # type: ignore[arg-type]
            kept = {k: v for k, v in event.details.items() if k != "assignedVariables"}
            yield event._replace(details=kept)

    monkeypatch.setattr(forking, "_copied", copied)
    with pytest.raises(AssertionError):
        _repeat(range(20), tmp_path)
