"""The imports of an author's module: import time passes before the first statement runs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The words of the language. The compiler, the engine and what checks values come when one is used.
AUTHORING = {
    "holdfast",
    "holdfast.api",
    "holdfast.api.boundary",
    "holdfast.api.branches",
    "holdfast.api.declared",
    "holdfast.api.harness",
    "holdfast.api.keyed",
    "holdfast.api.requests",
    "holdfast.api.retries",
    "holdfast.api.runs_on",
    "holdfast.api.limits",
    "holdfast.api.scopes",
    "holdfast.api.sealing",
    "holdfast.api.surface",
    "holdfast.api.task_context",
    "holdfast.api.task_errors",
    "holdfast.api.tasks",
    "holdfast.api.tools",
    "holdfast.api.workflows",
    "holdfast.errors",
    "holdfast.lazy_dataclass",
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
#: boto3 and what it brings. Lambda has it.
BOTO = {"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"}
#: Modules that cost more than a cold start should pay, beyond those that boto3 imports.
LARGE = """
import sys, boto3
boto3.client("dynamodb", region_name="eu-west-1")
before = set(sys.modules)
import functions.worker.app
large = {"asyncio", "pdb", "unittest", "xml", "sqlite3", "multiprocessing", "ctypes", "tomllib"}
print(sorted((set(sys.modules) - before) & large))
"""
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


#: The modules of ours that a cold start imports, at most. Each costs about a millisecond of CPU.
MODULES_MAX = {
    "functions.worker.app": 170,
    "functions.group.app": 59,
    "holdfast.aws.http": 171,
}
#: What a worker imports only when an event needs it.
RARE = {
    "holdfast.integrations",
    "holdfast.runtime.commands.api",
    "holdfast.runtime.commands.start",
    "holdfast.runtime.maintenance.sweeper",
    "holdfast.stepfunctions",
    "holdfast.trace_ids",
}


def test_a_worker_imports_few_modules_and_no_other_package_than_boto3() -> None:
    ours, foreign = _brought_by("functions.worker.app")

    assert len(ours) <= MODULES_MAX["functions.worker.app"]
    assert ours & RARE == set()
    assert foreign <= BOTO
    assert list(filter(_compiles_at_import, ours)) == []


def _compiles_at_import(module: str) -> bool:
    """Return True when the module has frozen classes of the standard library's decorator."""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    text = Path(found.origin).read_text()
    is_lazy = "from holdfast.lazy_dataclass import dataclass" in text
    return "@dataclass(frozen=True, slots=True)" in text and not is_lazy


def test_the_function_of_a_group_imports_nothing_of_the_log() -> None:
    ours, foreign = _brought_by("functions.group.app")

    assert len(ours) <= MODULES_MAX["functions.group.app"]
    assert not {"holdfast.runtime.storage.log", "holdfast.deployment"} & ours
    assert foreign == set()


FIRST_CALL = """
import sys
from holdfast import task
from holdfast.asl.jsonata.jsonata import compile_expression

@task
def add(number: int, note: str) -> int:
    return number + 1

compile_expression("$states.input.number"), compile_expression("$order.lines")
assert add.call_json({"number": 1, "note": "x"}) == 2
print(sorted(set(sys.modules) & {"jsonata", "pydantic", "regex"}))
"""


def test_the_first_call_of_a_task_with_plain_values_imports_no_parser_and_no_validator() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ran.stdout.strip() == "[]"


def test_the_api_imports_few_modules_and_no_other_package_than_boto3() -> None:
    ours, foreign = _brought_by("holdfast.aws.http")

    assert len(ours) <= MODULES_MAX["holdfast.aws.http"]
    assert foreign <= BOTO


def test_a_worker_imports_no_large_module_of_the_standard_library() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LARGE], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ran.stdout.strip() == "[]"


SERVED = """
import sys
from holdfast.local import serve, stack, wall
foreign = lambda: sorted(set(sys.modules) & {"boto3", "botocore", "moto", "urllib3"})
found = [foreign()]
wall.begin(lambda: 0, lambda request: wall.AwsResponse(200, {}, b"{}"))
import boto3
keys = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "x")
client = boto3.client("dynamodb", region_name="eu-west-1", **keys)
found.append(client.list_tables()["ResponseMetadata"]["HTTPStatusCode"])
wall.end()
import botocore.httpsession
found.append(botocore.httpsession.URLLib3Session.send.__module__)
print(found)
"""


def test_serve_imports_no_botocore_and_a_task_that_does_meets_the_wall() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SERVED], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ran.stdout.strip() == "[[], 200, 'botocore.httpsession']"
