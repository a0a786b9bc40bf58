"""The mutants at AWS's edge: their changes, their texts, and the reasons of survivors."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutation.copied import Found
from tests.mutation.deployed import SURVIVORS, kind_of
from tests.mutation.edge import PARTS, EdgeModule, Swaps, edge_modules
from tests.mutation.explained import explained
from tests.mutation.mutants import Module


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("get(Key=a, ConsistentRead=True)", {"without ConsistentRead=", "True → False"}),
        ("x = {'Key': a, 'Limit': b}", {"without 'Key':", "without 'Limit':"}),
        ("x = len(a.encode())", {"len(a.encode()) → len(a)"}),
        ("x = 900", {"900 → 901", "900 → 899"}),
        ("x = 0", {"0 → 1"}),
        ("x = a.work + a.starts", {"a.work → a.starts", "a.starts → a.work"}),
        ("x = WORK + STARTS", {"WORK → STARTS", "STARTS → WORK"}),
        ("x = a and b", {"a and b → a or b", "without a", "without b"}),
        ("a += b", {"a += b → a -= b", "assignment → pass"}),
    ],
)
def test_a_statement_of_a_request_is_changed_in_each_of_these_ways(
    statement: str, changes: set[str], tmp_path: Path
) -> None:
    (tmp_path / "it.py").write_text(f"{statement}\n", encoding="utf-8")
    made = Module("it.py", tmp_path, Swaps(ast.parse(statement)))
    assert changes <= {mutant.change for mutant in made.mutants}


def test_a_fault_that_is_no_longer_caught_is_a_mutant(tmp_path: Path) -> None:
    text = "try:\n    f()\nexcept OSError:\n    g()\n"
    (tmp_path / "it.py").write_text(text, encoding="utf-8")
    made = Module("it.py", tmp_path, Swaps(ast.parse(text)))
    assert "except OSError → except ()" in {mutant.change for mutant in made.mutants}


def test_a_mutant_leaves_every_other_statement_and_its_comments_as_they_are() -> None:
    module = EdgeModule("src/holdfast/limits.py", "limits")
    number = next(n for n, one in enumerate(module.mutants) if one.change == "900 → 901")
    before, after = module.text.splitlines(), module.mutated(number).splitlines()
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [
        ("SQS_DELAY_SECONDS_MAX: Final = 900", "SQS_DELAY_SECONDS_MAX: Final = 901")
    ]
    assert module.names(module.mutants[number].line) == {"SQS_DELAY_SECONDS_MAX"}


def test_every_part_has_its_modules() -> None:
    assert {module.part for module in edge_modules()} == set(PARTS)
    names = [module.name for module in edge_modules()]
    assert len(names) == len(set(names))


def test_every_survivor_with_a_reason_is_a_mutant() -> None:
    rows = explained(SURVIVORS)
    files = {module for module, _, _ in rows}
    made = {
        (mutant.module, mutant.text, mutant.change)
        for module in edge_modules()
        if module.name in files
        for mutant in module.mutants
    }
    assert rows - made == set()


def test_a_survivor_counts_as_explained_only_with_its_row() -> None:
    module = EdgeModule("functions/events/app.py", "functions")
    mutant = module.mutants[0]
    row = (mutant.module, mutant.text, mutant.change)
    assert kind_of(Found(module, mutant, None, 1), set()) == "survived"
    assert kind_of(Found(module, mutant, None, 1), {row}) == "explained"
    assert kind_of(Found(module, mutant, "a test", 1), {row}) == "killed"
