"""Every refusal has an example and a way out; no Python makes the compiler raise anything else.

`python -m tests.refusals --programs N --seed S` runs as many random programs as you like.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from holdfast.api.dag import Dag
from holdfast.api.surface import Workflow
from holdfast.compiler.compile import compile_module
from holdfast.local.proving import subjects_of_modules
from tests.refusals.candidates import public_names
from tests.refusals.deep import all_deep, sums
from tests.refusals.runs import KINDS, run
from tests.refusals.shapes import follows, shapes_in
from tests.refusals.sites import all_sites, watched
from tests.refusals.trial import outcome_of
from tests.thorough import examples
from tests.unit.dsl_golden_test import FOLDER, NAMES, refusals_of

SITUATIONS_MIN = 150
QUOTED = re.compile(r"`[^`]*`|\d+|\b[A-Z]\w*\b")


def twin_of(name: str) -> ModuleType:
    return importlib.import_module(f"tests.golden.fixed.{name}")


@contextmanager
def recursion_limit(frames: int) -> Iterator[None]:
    """Python's own; importing jsonata raises it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def workflows_of(module: ModuleType) -> set[str]:
    """The names of the functions that the module itself defines."""
    return {
        value.function.__name__
        for value in vars(module).values()
        if isinstance(value, Workflow)
        and not isinstance(value, Dag)
        and value.function.__module__ == module.__name__
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_refused_module_has_a_corrected_copy_that_compiles_and_is_proven(name: str) -> None:
    twin = twin_of(name)
    assert workflows_of(twin) >= workflows_of(importlib.import_module(f"tests.golden.{name}"))
    compiled = compile_module(twin)
    assert compiled
    for report in subjects_of_modules([twin.__name__], compiled):
        assert report.render().startswith(report.proofs.name)


@pytest.mark.parametrize("name", NAMES)
def test_the_corrected_copy_follows_the_help(name: str) -> None:
    twin = ast.parse((FOLDER / "fixed" / f"{name}.py").read_text(encoding="utf-8"))
    for diagnostic in refusals_of(name).diagnostics:
        shapes = shapes_in(diagnostic.help)
        assert not shapes or any(follows(twin, shape) for shape in shapes), diagnostic.render()


#: Codes whose helps name no edit that a test could apply, and why.
WITHOUT_EDIT: Final = {
    "HF004": "the import is one of the author's own modules",
    "HF010": "the line is removed",
    "HF021": "the value is returned by the branch, and used in another place",
    "HF033": "the handler is removed, or moved behind another one",
    "HF034": "the text is the author's own",
    "HF059": "the call is moved out of the @pure function",
    "HF060": "the author chooses where the task runs",
    "HF061": "the numbers are the author's own",
    "HF080": "the step moves from the task to the workflow",
    "HF151": "the type is one of several",
    "HF159": "the reply is the author's own value",
    "HF180": "the names are those of boto3",
    "HF181": "the names are those of boto3",
    "HF187": "the function reads the secret itself",
    "HF371": "the author decides whether the task may return None",
    "HF520": "the author decides which part of the value crosses as JSON",
}


def test_every_code_has_a_help_that_is_applied_or_says_why_it_is_no_edit() -> None:
    found = [one for name in NAMES for one in refusals_of(name).diagnostics]
    applied = {one.code for one in found if shapes_in(one.help)}
    assert {one.code for one in found} - applied <= WITHOUT_EDIT.keys()


def test_there_are_many_different_refusals_and_most_helps_are_code() -> None:
    found = [one for name in NAMES for one in refusals_of(name).diagnostics]
    situations = {(one.code, QUOTED.sub("x", one.message)) for one in found}
    as_code = [one for one in found if shapes_in(one.help)]
    print(f"{len(found)} refusals, {len(situations)} situations, {len(as_code)} helps with code")
    assert len(situations) >= SITUATIONS_MIN
    assert len(as_code) > len(found) / 2


def test_every_place_that_refuses_has_an_example(tmp_path: Path) -> None:
    with watched() as reached:
        for name in NAMES:
            refusals_of(name)
        with recursion_limit(1_000):
            assert outcome_of(sums(700), public_names(), tmp_path) == "refused"
    sites = all_sites()
    without = [
        f"{site.file}:{site.line}: {site.text}"
        for site in sites
        if not any(
            site.file == file and site.line <= line <= site.end_line for file, line in reached
        )
    ]
    print(f"{len(sites)} places refuse")
    assert len(sites) > 150
    assert without == []


def test_deep_nesting_is_compiled_or_refused_and_quickly(tmp_path: Path) -> None:
    ends = {outcome_of(text, public_names(), tmp_path) for text in all_deep()}
    assert ends >= {"accepted", "refused"}


@pytest.mark.parametrize("kind", KINDS)
def test_any_python_is_compiled_or_refused(kind: str, tmp_path: Path) -> None:
    counts, broken = run(kind, seed=1, programs=examples(150), folder=tmp_path)
    print(kind, dict(counts))
    assert not broken, f"seed 1: {broken[0]}"
    assert counts["refused"] > examples(50)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_seven_thousand_programs_are_compiled_or_refused(kind: str, tmp_path: Path) -> None:
    counts, broken = run(kind, seed=20, programs=7_000, folder=tmp_path)
    print(kind, dict(counts))
    assert not broken, f"seed 20: {broken[0]}"
