"""A test of an item by a constant index tells its type: `isinstance(results[1], Exception)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_module
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import assert_same, loaded

HEADER = """
from __future__ import annotations
from typing import Any
from pydantic import BaseModel
from holdfast import each, parallel, task, workflow

class Line(BaseModel):
    note: str | None = None

class Row(BaseModel):
    lines: list[Line] = []
    notes: list[str | None] = []
    by_number: dict[int, str | None] = {}

@task
def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError("even")
    return value

"""
RESULTS = """
@workflow
def flow(n: int, pair: tuple[int, str | None]) -> Any:
    found: list[Any] = []
    results = parallel(lambda: odd(n), lambda: odd(n + 1), return_exceptions=True)
    if isinstance(results[0], Exception):
        found.append(str(results[0]))
    elif not isinstance(results[1], Exception):
        found.append(results[0] + results[1])
    else:
        found.append(results[0])
    total = 0 if isinstance(results[1], Exception) else results[1] + 1
    many = each([1, n], odd, return_exceptions=True)
    if isinstance(many[1], ValueError):
        found.append("late")
    match results[1]:
        case int(k):
            found.append(k)
        case _:
            found.append("other")
    return [found, total, pair[1].upper() if pair[1] else pair[0]]
"""
ITEMS = """
@workflow
def flow(row: Row) -> Any:
    found: list[Any] = []
    if row.notes[0] is not None:
        found.append(row.notes[0].upper())
        row.notes[0] = None
        found.append(row.notes[0])
    if row.lines and row.lines[0].note:
        found.append(row.lines[0].note.upper())
    if 1 in row.by_number and row.by_number[1] is not None:
        found.append(row.by_number[1].upper())
    return [found, row]
"""


def test_results_and_errors_of_branches_are_told_apart_by_their_place(tmp_path: Path) -> None:
    with loaded(tmp_path, HEADER + RESULTS) as module:
        for n, text in ((1, "a"), (2, None), (3, "")):
            assert_same(module.flow, {"n": n, "pair": [n, text]})


def test_items_of_lists_and_dicts_are_narrowed_until_they_change(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"notes": ["a"], "lines": [{"note": "b"}], "by_number": {"1": "c"}},
        {"notes": [None], "lines": [], "by_number": {"1": None}},
    ]
    with loaded(tmp_path, HEADER + ITEMS) as module:
        for row in rows:
            assert_same(module.flow, {"row": row})


CHANGES = {
    "row.notes[i] = None": "row.notes[0]",
    "row.notes.reverse()": "row.notes[0]",
    "row.notes.pop(0)": "row.notes[0]",
    "row.notes[-1] = None": "row.notes[0]",
    "row.lines[i].note = None": "row.lines[0].note",
    "row.lines.insert(0, Line())": "row.lines[0].note",
    "row.by_number[i] = None": "row.by_number[0]",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_may_be_of_the_item_ends_what_is_known(change: str, tmp_path: Path) -> None:
    item = CHANGES[change]
    body = f"    if {item} is not None:\n        {change}\n        return {item}.upper()\n"
    source = f"{HEADER}@workflow\ndef flow(row: Row, i: int) -> Any:\n{body}    return 1\n"
    with loaded(tmp_path, source) as module, pytest.raises(CompileErrors, match="HF043"):
        compile_module(module)
