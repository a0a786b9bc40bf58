"""Steps of a document that call a service of AWS or an endpoint."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from holdfast import Dag, aws, http, task
from holdfast.compiler.compile import compile_dag
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.testing import World, fails, real

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "dag.md").read_text(encoding="utf-8")


@task
def charge(order: str) -> str:
    return f"receipt of {order}"


DOCUMENT = next(
    json.loads(block)
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    if "stored_order" in block
)
stored_order = Dag.from_json(DOCUMENT, [charge])


def refusals(**step: Any) -> list[str]:
    document = {"workflow_id": "x", "steps": [{"id": "a", "type": "service_call", **step}]}
    with pytest.raises(CompileErrors) as refused:
        Dag.from_json(document, [charge])
    return [one.code for one in refused.value.diagnostics]


def test_the_document_of_the_page_calls_both_services() -> None:
    seen: dict[str, Any] = {}

    def store(**arguments: Any) -> dict[str, Any]:
        seen.update(arguments)
        return {"ETag": "e1"}

    world = World({aws.s3.put_object: store, http.post: {"StatusCode": 200}}, others=real)
    run = world.run(stored_order, order="o1")

    assert run.steps == ["charge", "aws.s3.put_object", "http.post"]
    assert seen == {"Bucket": "receipts", "Key": "o1", "Body": "receipt of o1"}
    assert run.output == {"StatusCode": 200}


def test_the_states_are_those_of_a_call_in_a_workflow() -> None:
    states = compile_dag(stored_order).asl["States"]

    assert states["store"]["Resource"] == "arn:aws:states:::aws-sdk:s3:putObject"
    assert states["tell"]["Resource"] == "arn:aws:states:::http:invoke"
    assert states["tell"]["Arguments"] == {
        "Method": "POST",
        "ApiEndpoint": "https://example.com/orders",
        "RequestBody": {"order": "{% $states.context.Execution.Input.order %}"},
    }


def test_a_service_can_take_back_a_step() -> None:
    steps = [
        *DOCUMENT["steps"],
        {
            "id": "removed",
            "type": "compensation",
            "service": "aws.s3.delete_object",
            "depends_on": ["store"],
            "arguments": {"Bucket": "receipts", "Key": {"$input": "order"}},
        },
    ]
    graph = Dag.from_json({"workflow_id": "undone", "steps": steps}, [charge])
    outcomes = {
        aws.s3.put_object: {},
        aws.s3.delete_object: {},
        http.post: fails(ConnectionError("down")),
    }
    run = World(outcomes, others=real).run(graph, order="o1")

    assert run.error == "ConnectionError"
    assert run.steps[-1] == "aws.s3.delete_object"


@pytest.mark.parametrize(
    ("step", "codes"),
    [
        ({"service": "s3"}, ["HF180"]),
        ({"service": "aws.s4.put_object"}, ["HF180"]),
        ({"service": "aws.s3.put_objekt"}, ["HF181"]),
        ({"service": "aws.s3.put_object", "arguments": {"Bucket": "b"}}, ["HF183"]),
        (
            {"service": "aws.s3.put_object", "arguments": {"Bucket": 5, "Key": "k", "Kee": "k"}},
            ["HF182", "HF184"],
        ),
        ({"service": "http.post", "arguments": {"url": "http://example.com"}}, ["HF185"]),
        ({"service": "http.post"}, ["HF183"]),
        ({"service": "http.post", "arguments": {"url": "https://a.b", "body": 1}}, ["HF182"]),
        (
            {"service": "http.post", "arguments": {"url": "https://a.b", "json": {"$step": "b"}}},
            ["HF056"],
        ),
    ],
)
def test_a_call_that_the_service_does_not_take_is_refused(step: Any, codes: list[str]) -> None:
    assert sorted(refusals(**step)) == codes


# -- secrets ---------------------------------------------------------------------------------------


@task
def log_in(token: SecretStr) -> SecretStr:
    return token


TOKEN = {"$input": "token"}
KEPT = {"service": "aws.s3.put_object", "arguments": {"Bucket": "b", "Key": TOKEN}}


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (KEPT, "`token` in `Key` of"),
        (
            {**KEPT, "arguments": {"Bucket": "b", "Key": "k", "Body": [{"$step": "log_in"}]}},
            "`log_in` in `Body` of",
        ),
        (
            {"service": "http.post", "arguments": {"url": "https://a.b", "json": {"t": [TOKEN]}}},
            "`token` in `json` of",
        ),
    ],
)
def test_a_secret_of_the_input_or_of_a_step_is_no_argument_of_a_service(
    step: Any, what: str
) -> None:
    first = {"id": "log_in", "type": "service_call"}
    second = {"id": "a", "type": "service_call", "depends_on": ["log_in"], **step}
    with pytest.raises(CompileErrors) as refused:
        Dag.from_json({"workflow_id": "x", "steps": [first, second]}, [log_in])
    (one,) = refused.value.diagnostics
    assert one.code == "HF184"
    assert one.message.startswith(what)


def test_a_field_beside_the_secret_is_an_argument() -> None:
    key = {"$input": "order"}
    first = {"id": "log_in", "type": "service_call"}
    second = {**KEPT, "id": "a", "type": "service_call", "depends_on": ["log_in"]}
    second["arguments"] = {"Bucket": "b", "Key": key}
    found = Dag.from_json({"workflow_id": "x", "steps": [first, second]}, [log_in])
    assert compile_dag(found).asl["States"]["a"]["Arguments"]["Key"] != key
