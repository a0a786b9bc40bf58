"""asl-validator (npm) accepts everything that is compiled for Step Functions.

It accepts less than AWS: in a template, an item of a list may not be a list itself.
"""

from __future__ import annotations

import importlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import CompiledWorkflow, compile_module
from holdfast.compiler.targets.states import Rewriting
from tests.conformance import generated
from tests.conformance.node_kit import ROOT, ask

pytestmark = [
    pytest.mark.slow,
    # Parts of random programs are foolish (`[] [0]`); Python warns about some of them.
    pytest.mark.filterwarnings("ignore::SyntaxWarning"),
]
GENERATED = 300


def refusals(definitions: list[Any]) -> list[Any]:
    known = [within_its_schema(definition, is_item=False) for definition in definitions]
    return ask("asl_validator.mjs", "asl-validator", known)


def within_its_schema(value: Any, *, is_item: bool) -> Any:
    match value:
        case dict():
            return {key: within_its_schema(item, is_item=False) for key, item in value.items()}
        case list():
            items = [within_its_schema(item, is_item=True) for item in value]
            return {"a list in a list": items} if is_item else items
        case _:
            return value


def portable(compiled: CompiledWorkflow) -> Any:
    """Resources replaced, and the extensions left out, also those that would be refused."""
    return Rewriting(compiled.asl).machine()


def test_every_workflow_of_the_project_is_valid() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["holdfast"]
    modules = [importlib.import_module(name) for name in settings["modules"]]
    compiled = {found.name: found for module in modules for found in compile_module(module)}
    found = refusals([portable(workflow) for workflow in compiled.values()])
    assert dict(zip(compiled, found, strict=True)) == {name: [] for name in compiled}


def test_generated_workflows_are_valid(tmp_path: Path) -> None:
    machines = {
        name: portable(machine) for name, machine in generated.compiled(tmp_path, GENERATED)
    }
    found = zip(machines, refusals(list(machines.values())), strict=True)
    assert {name: problems for name, problems in found if problems} == {}


def test_the_validator_does_say_no() -> None:
    state: dict[str, Any] = {"Type": "Pass", "Next": "gone"}
    machine = {"QueryLanguage": "JSONata", "StartAt": "a", "States": {"a": state}}
    broken = {"Type": "Pass", "Output": "{% 1 + %}", "End": True}
    (missing, query) = refusals([machine, {**machine, "States": {"a": broken}}])
    assert "MISSING_TRANSITION_TARGET" in json.dumps(missing)
    assert query != []
