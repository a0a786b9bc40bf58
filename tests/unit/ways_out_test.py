"""The help of a refusal says a form that is accepted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast import cli
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from tests.unit.dsl_kit import loaded

MODULE = """
from __future__ import annotations
import math
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal
from pydantic import BaseModel
from holdfast import ask, choice, minutes, seconds, sleep, task, workflow

@dataclass(frozen=True)
class Agent:
    name: str
class Check(BaseModel):
    ok: bool
class BankConfirmation(StrEnum):
    CONFIRM = "confirm"
    DENY = "deny"
@task
def search(text: str) -> str: ...
@task
def model(name: str) -> str: ...
TOOLS = choice(search, model)
FRENCH = Agent(name="french")
def french() -> Agent: return Agent(name="french")
def named(agent: Agent) -> str: return model(agent.name)
def parsed(output) -> Any: return output.model_validate_json(model("a"))
def text_of() -> str: return model("a")
def called(tools, key) -> str:
    name = model("a")
    return tools[key](name)
def called_by_key(key: str) -> str:
    name = model("a")
    return TOOLS[key](name)
@workflow
def flow(key: str, wait: float) -> Any:
    return BODY
"""
#: A refused expression, a part of the help, and the form that the help says.
WAYS = [
    ("called(TOOLS, key)", "TOOLS = choice(…), and call TOOLS[key](…)", "called_by_key(key)"),
    ("parsed(Check)", "Check.model_validate_json(…)", "Check.model_validate_json(text_of())"),
    ("named(FRENCH)", "def french() -> Agent: return Agent(…), and french()", "named(french())"),
    ("FRENCH.name", "def french() -> Agent: return Agent(…), and french()", "french().name"),
    ("sleep(seconds(wait))", "seconds(math.ceil(wait))", "sleep(seconds(math.ceil(wait)))"),
    (
        "sleep(minutes(wait))",
        "seconds(math.ceil(wait * 60))",
        "sleep(seconds(math.ceil(wait * 60)))",
    ),
    (
        "sleep(timedelta(hours=wait))",
        "math.ceil(wait * 3_600)",
        "sleep(seconds(math.ceil(wait * 3_600)))",
    ),
    ("sleep(seconds(0.5))", "seconds(1)", "sleep(seconds(1))"),
    (
        'ask("q", Literal["confirm", "deny"], assignee="me")',
        'class BankConfirmation(StrEnum): CONFIRM = "confirm"; DENY = "deny"',
        'ask("q", BankConfirmation, assignee="me")',
    ),
]


def refusals(flow: Any) -> str:
    try:
        compile_workflow(flow)
    except CompileErrors as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("way", WAYS)
def test_the_form_in_the_help_is_accepted(way: tuple[str, str, str], tmp_path: Path) -> None:
    refused, help_, accepted = way
    with loaded(tmp_path, MODULE.replace("BODY", refused)) as module:
        assert help_ in refusals(module.flow)
    with loaded(tmp_path, MODULE.replace("BODY", accepted)) as module:
        assert not refusals(module.flow)


def test_a_module_whose_name_is_no_identifier_is_imported_as_the_help_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "15_flows.py").write_text("raise KeyError('here')\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", "15_flows"]) == 1
    shown = capsys.readouterr()
    help_ = (shown.out + shown.err).partition("python -c ")[2].partition("`")[0].strip()
    command = help_.removeprefix('"').removesuffix('"')
    ran = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=False
    )
    assert "KeyError: 'here'" in ran.stderr


def test_what_a_decorator_refuses_is_shown_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = 'from holdfast import workflow\n\n\n@workflow(key="n", starts_on="x")\n'
    source += "def flow(n: str, m: int) -> None: ...\n"
    (tmp_path / "keyed_without_default.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", "keyed_without_default"]) == 1
    shown = capsys.readouterr()
    lines = (shown.out + shown.err).splitlines()
    assert lines[0].startswith("keyed_without_default.py:4:1: error[HF155]: the workflow flow is")
    line = '@workflow(key="n", starts_on="x")'
    assert lines[1:3] == [f"    4 | {line}", f"      | {'^' * len(line)}"]
