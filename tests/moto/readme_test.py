"""The README as a newcomer follows it: its program compiles, its commands work."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from holdfast.dsl.compile import compile_module
from tests.moto.conftest import Shell

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.xdist_group("serve")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> list[list[str]]:
    """-> what the console blocks say to type, one list of words a line."""
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [shlex.split(line.removeprefix("$ ")) for line in lines]


def test_the_program_of_the_readme_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _ = blocks("python")
    (tmp_path / "readme_program.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("readme_program")
    try:
        (compiled,) = compile_module(module)
    finally:
        del sys.modules["readme_program"]
    assert compiled.name == "fulfil"
    assert "wait for bank.settled" in compiled.asl["States"]


def test_the_commands_of_the_readme_work_one_after_the_other(shell: Shell) -> None:
    typed = [words for words in commands() if words[1] not in {"demo", "test", "serve"}]
    assert [words[1] for words in typed] == ["start", "show", "event", "history", "list"]
    for words in typed:
        assert words[0] == "./holdfast"
        if words[1] == "event":
            shell.until(lambda found: found["waits"][0]["kind"] == "event", "show", "contract-7")
        assert shell(*words[1:]) == 0, shell.complaints
    shell.until(lambda found: found["status"] == "SUCCEEDED", "show", "contract-7")
    assert shell.json("show", "contract-7")["output"] == "signed"


def test_ci_runs_the_test_command_as_the_readme_has_it() -> None:
    assert ["./holdfast", "test"] in commands()
    assert "./holdfast test" in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_what_the_readme_points_at_is_there(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()


def test_every_python_block_in_the_documents_is_python() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for block in re.findall(
            r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
        ):
            ast.parse(block)
