"""Generated programs, once compiled and once run. Whether the runs are right, others ask."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.compiler.compile import CompiledWorkflow, compile_module
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import Difference
from tests.differential.choices import Choices
from tests.differential.programs import HEADER, program
from tests.differential.runs import compare, loaded


def compiled(folder: Path, count: int) -> Iterator[tuple[str, CompiledWorkflow]]:
    """Yield (its name and seed, the machine) for the first that the compiler accepts."""
    seed = found = 0
    while found < count:
        with (
            loaded(folder, HEADER + program(Choices(seed))) as module,
            contextlib.suppress(CompileErrors),
        ):
            for machine in compile_module(module):
                found += 1
                yield f"{machine.name} of seed {seed}", machine
        seed += 1


def run(folder: Path, count: int) -> None:
    """Runs programs on drawn inputs, with drawn outcomes of their tasks."""
    counts: Counter[Any] = Counter()
    for seed in range(count):
        with contextlib.suppress(Difference):
            compare(Choices(seed), folder, 2, counts)
    assert counts["runs"] > count
