"""Graphs as JSON: their compiled form, and the refusals with place and words.

`python -m tests.unit.dag_json_test` writes tests/golden/documents/<name>.txt again from
<name>.json.
"""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import Dag, Retry, Task, dag, from_input, from_step, step, task
from holdfast.compiler.compile import compile_dag, compile_module, compile_workflow
from holdfast.compiler.diagnostics import CODES, CompileErrors
from holdfast.errors import WorkflowError
from tests.thorough import examples
from tests.unit import dag_json_module

FOLDER = Path(__file__).parents[1] / "golden" / "documents"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
DOCUMENTS = 3_000


@task
def extract(day: str) -> list[int]:
    return [len(day)]


@task
def clean(extract: list[int], limit: int = 10) -> list[int]:
    return extract[:limit]


@task
def publish(clean: list[int], extract: list[int]) -> str:
    return f"{clean} of {extract}"


TASKS: list[Task[..., Any]] = [extract, clean, publish]
DOCUMENT: dict[str, Any] = {
    "workflow_id": "nightly",
    "timeout_seconds": 600,
    "steps": [
        {"id": "rows", "type": "extract", "arguments": {"day": "monday"}},
        {
            "id": "clean",
            "type": "clean",
            "depends_on": ["rows"],
            "arguments": {"extract": {"$step": "rows"}, "limit": {"$input": "most"}},
            "timeout_seconds": 60,
            "retry": {"max_attempts": 3, "interval_seconds": 5, "backoff": 1.5},
        },
        {
            "id": "publish",
            "type": "publish",
            "depends_on": ["clean", "rows"],
            "arguments": {"extract": [1, {"$input": "most"}]},
        },
    ],
}
IN_PYTHON = dag(
    "nightly",
    step("rows", extract, arguments={"day": "monday"}),
    step(
        "clean",
        clean.options(
            timeout=timedelta(seconds=60),
            retry=Retry(max_attempts=3, interval=timedelta(seconds=5), backoff=1.5),
        ),
        depends_on=["rows"],
        arguments={"extract": from_step("rows"), "limit": from_input("most")},
    ),
    step(
        "publish",
        publish,
        depends_on=["clean", "rows"],
        arguments={"extract": [1, from_input("most")]},
    ),
    timeout=timedelta(minutes=10),
)


# Accepted graphs.


def test_a_document_and_its_text_are_the_same_graph_as_in_python() -> None:
    expected = compile_workflow(IN_PYTHON).asl
    assert compile_workflow(Dag.from_json(DOCUMENT, TASKS)).asl == expected
    assert compile_workflow(Dag.from_json(json.dumps(DOCUMENT), TASKS)).asl == expected


def test_the_map_leads_to_the_place_in_the_text() -> None:
    text = json.dumps(DOCUMENT, indent=1)
    sources: Any = compile_workflow(Dag.from_json(text, TASKS, file="nightly.json")).sources
    for place, name in enumerate(("rows", "clean", "publish")):
        row = sources[name]
        rest = "\n".join(text.splitlines()[row["line"] - 1 :])[row["column"] - 1 :]
        assert json.JSONDecoder().raw_decode(rest)[0] == DOCUMENT["steps"][place]
        assert row["file"] == "nightly.json"


def test_a_graph_that_a_module_reads_is_one_of_its_workflows() -> None:
    [compiled] = compile_module(dag_json_module)
    assert compiled.name == "from_a_document"
    assert compiled.function == "tests.unit.dag_json_module:from_a_document"


# Refused graphs.


def refusals_of(name: str) -> WorkflowError:
    path = FOLDER / f"{name}.json"
    with pytest.raises(WorkflowError) as refused:
        Dag.from_json(path.read_text(encoding="utf-8"), TASKS, file=f"documents/{path.name}")
    return refused.value


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_of_a_document_gives_place_reason_and_fix(name: str) -> None:
    assert f"{refusals_of(name)}\n" == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_every_refusal_of_a_document_has_a_code_a_place_and_a_help(name: str) -> None:
    refused = refusals_of(name)
    assert refused.help
    for diagnostic in refused.diagnostics if isinstance(refused, CompileErrors) else ():
        assert diagnostic.code in CODES
        assert diagnostic.help, diagnostic.message
        assert diagnostic.column + diagnostic.width <= len(diagnostic.source_line) + 1


def test_broken_documents_are_refused_and_never_raise_anything_else() -> None:
    refused = 0
    documents = examples(DOCUMENTS)
    for seed in range(documents):
        chance = random.Random(seed)
        document = json.loads(json.dumps(DOCUMENT))
        for _ in range(chance.randint(1, 3)):
            break_one(document, chance)
        try:
            graph = Dag.from_json(document, TASKS)
            compile_dag(graph)
            compile_dag(graph, in_plain_asl=True)
        except WorkflowError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {document}") from error
    assert documents // 2 < refused < documents


ODD: list[Any] = [None, True, 0, -1, 0.5, 1e300, 10**400, "", "rows", "clean", "a b", "ß", [], {}]
ODD += [["rows"], {"$step": "publish"}, {"$step": 5}, {"$input": "for"}, {"a": {"$x": 1}}, "\ud800"]


def break_one(value: Any, chance: random.Random) -> None:
    """Replaces, removes or doubles something, somewhere inside."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = chance.choice(keys)
    if isinstance(value[key], dict | list) and chance.random() < 0.7:
        break_one(value[key], chance)
        return
    match chance.choice(["replace", "remove", "double"]):
        case "replace":
            value[key] = chance.choice(ODD)
        case "remove":
            del value[key]
        case _ if isinstance(value, list):
            value.append(value[key])
        case _:
            value[chance.choice(["id", "more", "retry", "depends_on"])] = value[key]


if __name__ == "__main__":
    for golden in NAMES:
        (FOLDER / f"{golden}.txt").write_text(f"{refusals_of(golden)}\n", encoding="utf-8")
