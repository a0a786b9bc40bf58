"""The workflows that this repository ships: listed, named after their modules, and written down."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from holdfast.api.registry import Registry
from holdfast.compiler.compile import compile_module

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "statemachines"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MODULES: list[str] = SETTINGS["tool"]["holdfast"]["modules"]


def test_all_workflows_load_side_by_side_each_named_after_its_module() -> None:
    registry = Registry.from_modules(MODULES)
    assert set(registry.workflows) == {module.rpartition(".")[2] for module in MODULES}


def test_every_definition_in_the_folder_belongs_to_a_listed_module() -> None:
    names = {module.rpartition(".")[2] for module in MODULES}
    assert {path.name.partition(".")[0] for path in FOLDER.glob("*.json")} == names


@pytest.mark.parametrize("module", MODULES)
def test_the_checked_in_definitions_are_those_of_the_compiler(module: str) -> None:
    (found,) = compile_module(importlib.import_module(module))
    for kind, text in (("asl", found.asl_text), ("map", found.map_text)):
        assert (FOLDER / f"{found.name}.{kind}.json").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("module", MODULES)
def test_every_workflow_is_tried_in_generated_worlds(module: str) -> None:
    tests = ROOT / "tests" / "unit" / "workflows" / f"{module.rpartition('.')[2]}_test.py"
    assert "check_workflow(" in tests.read_text(encoding="utf-8")


@pytest.mark.parametrize("module", MODULES)
def test_every_workflow_has_its_section_and_its_picture(module: str) -> None:
    name = module.rpartition(".")[2]
    page = (ROOT / "docs" / "reference" / "workflows.md").read_text(encoding="utf-8")
    assert re.search(rf"^##+ .*`{name}`$", page, re.MULTILINE)
    assert f"](../images/{name}.svg)" in page
