"""Random programs: whatever the compiler accepts does what the same Python does.

One seed again: `python -m tests.unit.dsl_fuzz_test SEED` prints the program and both runs.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from holdfast.dsl.compile import compile_workflow
from holdfast.dsl.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded, run_compiled, run_direct
from tests.unit.dsl_programs import program
from tests.unit.dsl_semantics_test import HEADER

INPUTS: list[dict[str, Any]] = [
    {
        "n": 1,
        "m": 2,
        "b": True,
        "s": "a",
        "o": None,
        "xs": [3, 1],
        "ss": ["a", "b"],
        "xss": [[1], [2, 3]],
        "d": {"a": 1},
        "line": {"sku": "a"},
        "lines": [{"sku": "x", "qty": 2, "tags": ["t"]}, {"sku": "y"}],
    },
    {
        "n": 0,
        "m": -3,
        "b": False,
        "s": "",
        "o": "k",
        "xs": [],
        "ss": [],
        "xss": [],
        "d": {},
        "line": {"sku": "", "qty": 0},
        "lines": [],
    },
    {
        "n": 7,
        "m": 1,
        "b": True,
        "s": "Small",
        "o": "",
        "xs": [5],
        "ss": ["k"],
        "xss": [[]],
        "d": {"k": 2, "a": 0},
        "line": {"sku": "b", "tags": ["q", "r"]},
        "lines": [{"sku": "x"}],
    },
]
#: Parts of random programs are foolish (`[] [0]`); Python warns about some of them.
pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")


def _compare(seeds: range, folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        with loaded(folder, HEADER + program(seed)) as module:
            try:
                compile_workflow(module.flow)
            except CompileErrors:
                counts["refused"] += 1
                continue
            counts["accepted"] += 1
            for values in INPUTS:
                try:
                    assert_same(module.flow, values)
                except AssertionError as difference:
                    raise AssertionError(f"seed {seed}: {difference}") from None
    return counts


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_run_alike(first: int, tmp_path: Path) -> None:
    counts = _compare(range(first, first + 20), tmp_path)
    assert counts["accepted"] >= 5, counts


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 2_500, 250))
def test_many_random_programs_run_alike(first: int, tmp_path: Path) -> None:
    counts = _compare(range(first, first + 250), tmp_path)
    assert counts["accepted"] >= 100, counts


def _show(seed: int) -> None:
    text = program(seed)
    sys.stdout.write(text)
    with TemporaryDirectory() as folder, loaded(Path(folder), HEADER + text) as module:
        for values in INPUTS:
            direct, compiled = (run(module.flow, values, {}) for run in (run_direct, run_compiled))
            sys.stdout.write(f"\n{direct}\n{compiled}\n")


if __name__ == "__main__":
    _show(int(sys.argv[1]))
