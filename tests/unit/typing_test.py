"""Editors understand every call without a plug-in: what mypy and pyright make of tests/typing.

Each marked line of accepted.py reveals the type that stands beside it. Each marked line of
refused.py is an error, and no other line is.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.api import surface

ROOT = Path(__file__).parents[2]
ACCEPTED, REFUSED = ROOT / "tests/typing/accepted.py", ROOT / "tests/typing/refused.py"
PYRIGHT = ROOT / "node_modules" / "pyright" / "index.js"
NODE = Path(sys.executable).with_name("node")
_REVEALED = re.compile(r'is "([^"]*)"$')
_MODULE = re.compile(r"\b(?:\w+\.)+(?=\w)")


@dataclass
class Findings:
    """By file name and line: the types that were revealed, the messages of errors."""

    revealed: dict[tuple[str, int], str] = field(default_factory=dict)
    errors: dict[tuple[str, int], str] = field(default_factory=dict)

    def add(self, file: str, line: int, severity: str, message: str) -> None:
        place = (Path(file).name, line)
        if severity == "error":
            self.errors[place] = message
        elif (found := _REVEALED.search(message)) is not None:
            self.revealed[place] = _MODULE.sub("", found[1])


def run_mypy(cache: Path) -> Findings:
    command = [sys.executable, "-m", "mypy", "--strict", "--output=json", f"--cache-dir={cache}"]
    findings = Findings()
    for line in _output_of([*command, str(ACCEPTED), str(REFUSED)]).splitlines():
        row = json.loads(line)
        findings.add(row["file"], row["line"], row["severity"], row["message"])
    return findings


def run_pyright(_: Path) -> Findings:
    if not PYRIGHT.exists() or not NODE.exists():
        pytest.skip("pyright is not installed: uv run npm ci")
    command = [str(NODE), str(PYRIGHT), "--outputjson", "--pythonpath", sys.executable]
    findings = Findings()
    found = json.loads(_output_of([*command, str(ACCEPTED), str(REFUSED)]))
    for row in found["generalDiagnostics"]:
        line = row["range"]["start"]["line"] + 1
        findings.add(row["file"], line, row["severity"], row["message"])
    return findings


def _output_of(command: list[str]) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


Run = Callable[[Path], Findings]


@pytest.fixture(params=[run_mypy, run_pyright], ids=["mypy", "pyright"], scope="module")
def findings(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    run: Run = request.param
    return run(tmp_path_factory.mktemp("cache"))


def _marked(path: Path, mark: str) -> dict[tuple[str, int], str]:
    """Return the text after the mark, by place."""
    lines = path.read_text().splitlines()
    cut = [(number, line.partition(mark)) for number, line in enumerate(lines, 1)]
    return {(path.name, number): after for number, (_, found, after) in cut if found}


@pytest.mark.xdist_group("type checkers")
def test_every_call_has_the_type_that_stands_beside_it(findings: Findings) -> None:
    assert findings.revealed == _marked(ACCEPTED, "# -> ")


@pytest.mark.xdist_group("type checkers")
def test_misuse_is_an_error_in_its_line_and_nothing_else_is(findings: Findings) -> None:
    found, expected = findings.errors, _marked(REFUSED, "# refused")
    assert not found.keys() - expected.keys(), found
    assert not expected.keys() - found.keys()


def test_everything_that_a_workflow_is_written_with_is_called() -> None:
    tree = ast.parse(ACCEPTED.read_text())
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    decorators = {"pure", "task", "workflow"}
    written_with = {*holdfast.__all__} & {*surface.__all__}
    functions = {name for name in written_with if name.islower()}
    assert functions - decorators <= called


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "src" / "holdfast" / "py.typed").exists()
