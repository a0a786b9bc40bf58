"""The README as a newcomer follows it: its program compiles, its commands work."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.compiler.compile import compile_module
from tests.moto.conftest import Shell
from tests.moto.sessions_test import served

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.xdist_group("serve")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


#: Commands that run for long, and have tests of their own.
LONG = {"demo", "test", "serve"}


def commands() -> list[list[str]]:
    """Return the commands in the console blocks, one list of words a line."""
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


def test_the_client_of_the_readme_starts_its_state_machine(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.holdfast]\nmodules = []\n")
    _, program = blocks("python")
    seen = """
while (found := states.describe_execution(**execution))["status"] == "RUNNING":
    pass
print(found["output"])
"""
    started = 'execution = {"executionArn": execution["executionArn"]}\n'
    with served(tmp_path):
        command = [sys.executable, "-c", program + started + seen]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert json.loads(run.stdout) == {"text": "Hello, Ada."}, run.stderr


def test_the_commands_of_the_readme_work_one_after_the_other(shell: Shell) -> None:
    typed = [words for words in commands() if words[0] == "./holdfast" and words[1] not in LONG]
    assert [words[1] for words in typed] == ["start", "show", "event", "history", "list"]
    for words in typed:
        assert words[0] == "./holdfast"
        if words[1] == "event":
            shell.until(lambda found: found["waits"][0]["kind"] == "event", "show", "contract-7")
        assert shell(*words[1:]) == 0, shell.complaints
    shell.until(lambda found: found["status"] == "SUCCEEDED", "show", "contract-7")
    assert shell.json("show", "contract-7")["output"]["status"] == "signed"


def test_ci_runs_the_test_command_as_the_readme_has_it() -> None:
    assert ["./holdfast", "test"] in commands()
    assert "./holdfast test" in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_the_target_of_each_link_of_the_readme_exists(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()
