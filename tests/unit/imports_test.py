"""The imports of an author's module: import time passes before the first statement runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The words of the language. The compiler, the engine and what checks values come when one is used.
AUTHORING = {
    "holdfast",
    "holdfast.api",
    "holdfast.api.batches",
    "holdfast.api.boundary",
    "holdfast.api.branches",
    "holdfast.api.dag",
    "holdfast.api.graph_model",
    "holdfast.api.harness",
    "holdfast.api.lambdas",
    "holdfast.api.limits",
    "holdfast.api.schedules",
    "holdfast.api.scopes",
    "holdfast.api.sealing",
    "holdfast.api.step_types",
    "holdfast.api.surface",
    "holdfast.api.tasks",
    "holdfast.api.tools",
    "holdfast.errors",
    "holdfast.limits",
    "holdfast.sealed",
}
#: The modules that a module with models imports itself.
PYDANTIC = {
    "annotated_types",
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "typing_inspection",
}
PROGRAM = """
import importlib, json, sys
before = set(sys.modules)
importlib.import_module(sys.argv[1])
came = {name: sys.modules[name] for name in set(sys.modules) - before}
ours = {name for name in came if name.partition(".")[0] == "holdfast"}
files = {name: getattr(module, "__file__", None) or "" for name, module in came.items()}
foreign = {name.partition(".")[0] for name, file in files.items() if "site-packages" in file}
print(json.dumps([sorted(ours), sorted(foreign)]))
"""


def _brought_by(module: str) -> tuple[set[str], set[str]]:
    """Return our modules and other people's packages that a fresh process has after the import."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, module],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    ours, foreign = json.loads(ran.stdout)
    return set(ours), set(foreign)


def test_importing_holdfast_gives_the_public_names_and_imports_no_other_package() -> None:
    assert _brought_by("holdfast") == (AUTHORING, set())


def test_a_module_of_workflows_with_models_brings_pydantic_alone() -> None:
    assert _brought_by("statemachines.loan_approval") == (AUTHORING, PYDANTIC)
