"""Refusals and their words: tests/golden/<name>.py and tests/golden/<name>.txt.

`python -m tests.unit.dsl_golden_test` writes the texts again; read the difference before you commit
it.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CODES, CompileErrors

FOLDER = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "shop")


def refusals_of(name: str) -> CompileErrors:
    module = importlib.import_module(f"tests.golden.{name}")
    with pytest.raises(CompileErrors) as refused:
        compile_module(module)
    return refused.value


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_of_a_program_gives_place_reason_and_fix(name: str) -> None:
    assert f"{refusals_of(name)}\n" == (FOLDER / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_refusal_has_a_known_code_a_place_and_a_help(name: str) -> None:
    for diagnostic in refusals_of(name).diagnostics:
        assert diagnostic.code in CODES
        assert diagnostic.help, diagnostic.message
        assert 1 <= diagnostic.column <= len(diagnostic.source_line) + 1
        assert diagnostic.column + diagnostic.width <= len(diagnostic.source_line) + 1


def test_every_code_of_the_language_has_an_example() -> None:
    found = {diagnostic.code for name in NAMES for diagnostic in refusals_of(name).diagnostics}
    elsewhere = {"HF064", "HF065", "HF070", "HF071", "HF080"}
    assert found | elsewhere == set(CODES)


def test_the_page_of_errors_lists_every_code() -> None:
    page = (FOLDER.parents[1] / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    for code, meaning in CODES.items():
        assert f"| {code} | {meaning} |" in page


if __name__ == "__main__":
    for golden in NAMES:
        (FOLDER / f"{golden}.txt").write_text(f"{refusals_of(golden)}\n")
