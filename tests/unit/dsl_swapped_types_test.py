"""The table's expressions with values of other types: refused, or equal to Python."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_expressions_test import EXPRESSIONS, HEADER, INPUTS
from tests.unit.dsl_kit import assert_same, loaded

PROGRAMS = 2_000
RUNS = 3
NAMES_MAX = 3
pytestmark = [
    pytest.mark.slow,
    # Some of the expressions are foolish (`5 is b`); Python warns about them.
    pytest.mark.filterwarnings("ignore::SyntaxWarning"),
]


def swapped(choice: random.Random) -> tuple[list[str], str] | None:
    """An expression with one of its names replaced by any other, and the names in it."""
    names = choice.choice(list(EXPRESSIONS))
    text = choice.choice(EXPRESSIONS[names])
    old, new = choice.choice(names.split()), choice.choice(list(INPUTS))
    text = re.sub(rf"\b{old}\b", new, text)
    used = [name for name in INPUTS if re.search(rf"\b{name}\b", text)]
    try:
        compile(text, "swapped", "eval")
    except SyntaxError:
        return None
    return (used, text) if 0 < len(used) <= NAMES_MAX else None


def test_an_expression_about_other_types_is_refused_or_the_same(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    choice = random.Random(seed)
    programs = [found for _ in range(PROGRAMS) if (found := swapped(choice)) is not None]
    flows = (
        f"@workflow\ndef flow_{number}({', '.join(f'{n}: {INPUTS[n][0]}' for n in names)}):\n"
        f"    return {text}\n"
        for number, (names, text) in enumerate(programs)
    )
    accepted = 0
    with loaded(tmp_path, HEADER + "\n".join(flows)) as module:
        for number, (names, text) in enumerate(programs):
            flow = getattr(module, f"flow_{number}")
            try:
                compile_workflow(flow)
            except CompileErrors:
                continue
            accepted += 1
            for _ in range(RUNS):
                values = {name: choice.choice(INPUTS[name][1]) for name in names}
                try:
                    assert_same(flow, values)
                except AssertionError as difference:
                    raise AssertionError(f"{text} of {values}: {difference}") from None
    assert accepted > PROGRAMS // 10
