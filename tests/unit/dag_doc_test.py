"""docs/reference/dag.md, done word for word: its modules, its document, its command."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main
from holdfast.compiler.compile import compile_workflow
from holdfast.testing import World, real

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "dag.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"\$ holdfast (.*)\n((?:.*\n)*)")
RESULT = {"deploy": "3 rows in test", "report": "0 faults in 3 rows"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the page's modules under the names that they give themselves."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "hourly.json").write_text(blocks("json")[0])
    for block in blocks("python"):
        (tmp_path / block.splitlines()[0].strip('"')).write_text(block)
    yield tmp_path
    for name in ("nightly", "hourly"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("project")
def test_the_graph_of_the_page_runs_in_both_ways() -> None:
    nightly: Any = importlib.import_module("nightly")
    run = World(others=real).run(nightly.nightly, day="monday", stage="test")
    assert run.output == RESULT == nightly.nightly(day="monday", stage="test")
    assert nightly.nightly.normalise_input({"day": "monday", "stage": "test"}) == {
        "day": "monday",
        "limit": 100,
        "stage": "test",
    }
    branched = [state["Type"] for state in compile_workflow(nightly.nightly).asl["States"].values()]
    assert branched == ["Task", "Parallel"]


@pytest.mark.usefixtures("project")
def test_the_document_of_the_page_is_the_same_graph() -> None:
    hourly: Any = importlib.import_module("hourly")
    assert World(others=real).run(hourly.hourly, day="monday").output == RESULT
    sources: Any = compile_workflow(hourly.hourly).sources
    assert sources["deploy"]["file"] == "hourly.json"
    assert sources["deploy"]["text"].startswith('{"id": "deploy"')


def test_the_command_prints_the_text_on_the_page(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks("console"):
        if "holdfast register" in block:  # needs an API: `registered_graphs_test` runs it
            continue
        typed = COMMAND.fullmatch(block)
        assert typed is not None
        assert main(typed[1].split()) == 0
        assert capsys.readouterr().out == typed[2]
    assert (project / "nightly.stepfunctions.json").exists()


def test_a_document_compiles_alone_with_the_tasks_of_a_module(project: Path) -> None:
    assert main(["compile", "hourly.json", "nightly"]) == 0
    assert main(["compile", "--check", "hourly.json", "nightly"]) == 0
    alone = json.loads((project / "hourly.asl.json").read_text())
    hourly: Any = importlib.import_module("hourly")
    assert alone == compile_workflow(hourly.hourly).asl


@pytest.mark.usefixtures("project")
def test_a_document_that_is_refused_or_missing_ends_the_command_with_the_reason(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (project / "hourly.json").read_text().replace('"type": "lint"', '"type": "flint"')
    (project / "hourly.json").write_text(text)
    assert main(["compile", "hourly.json", "nightly"]) == 1
    assert 'hourly.json:5:28: error[HF056]: "flint" is none of the' in capsys.readouterr().err
    assert main(["compile", "missing.json", "nightly"]) == 2
    assert "error[HF282]: missing.json" in capsys.readouterr().err
