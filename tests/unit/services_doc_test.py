"""Calls of services in workflows: docs/how-to/services.md, the testing kit, Step Functions."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast import aws, http
from holdfast.api.registry import Registry
from holdfast.compiler.compile import compile_workflow
from holdfast.errors import WorkflowError
from holdfast.service_models import action_of, python_name
from holdfast.testing import World
from tests.unit.dsl_kit import loaded

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "services.md").read_text(encoding="utf-8")
PROGRAM, ON_LAMBDA = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ACCEPTED = {"StatusCode": 200, "ResponseBody": {"id": "r7"}}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with loaded(tmp_path_factory.mktemp("services"), PROGRAM) as module:
        yield module


def order_of(page: ModuleType) -> Any:
    return page.Order(id="o1", cents=500)


def test_the_workflow_of_the_page_stores_charges_and_sends(page: ModuleType) -> None:
    world = World({aws.s3.put_object: {}, http.post: ACCEPTED, aws.sqs.send_message: {}})
    run = world.run(page.invoice, order_of(page))
    assert run.output == "200 r7"
    assert run.steps == ["aws.s3.put_object", "http.post", "aws.sqs.send_message"]
    (posted,) = run.calls_of(http.post)
    assert posted.arguments == {
        "Method": "POST",
        "ApiEndpoint": "https://bank.example.com/charges",
        "RequestBody": {"id": "o1", "cents": 500},
        "Authentication": {"ConnectionArn": page.CONNECTION},
    }


def test_an_error_of_a_service_is_caught_by_its_class(page: ModuleType) -> None:
    run = World({aws.s3.get_object: page.NoSuchKey("no such key")}).run(page.stored, "o1")
    assert run.output == ""
    gone = World({aws.s3.put_object: {}, http.post: page.NotFound("gone")})
    assert gone.run(page.invoice, order_of(page)).output == "no such account"


def test_a_failed_call_is_retried_and_then_undone_by_another_call(page: ModuleType) -> None:
    world = World(
        {
            aws.s3.put_object: {},
            aws.s3.delete_object: {},
            http.post: http.status_error(503)("busy"),
        }
    )
    run = world.run(page.invoice, order_of(page))
    assert (run.status, run.error) == ("FAILED", "States.Http.StatusCode.503")
    assert run.steps == ["aws.s3.put_object", *["http.post"] * 3, "aws.s3.delete_object"]


def test_a_scripted_function_gets_the_fields_of_the_state(page: ModuleType) -> None:
    def get_object(Bucket: str, Key: str) -> dict[str, str]:  # noqa: N803
        return {"Body": f"{Bucket}/{Key}"}

    assert World({aws.s3.get_object: get_object}).run(page.stored, "o1").output == "invoices/o1"


def test_the_fields_of_a_result_have_the_types_of_the_model(page: ModuleType) -> None:
    listed = {"Contents": [{"Key": "a"}, {"Key": "b"}]}
    world = World({aws.s3.list_objects_v2: listed, aws.s3.delete_object: {}})
    run = world.run(page.emptied, "invoices")
    assert run.output == 2
    assert [call.arguments["Key"] for call in run.calls_of(aws.s3.delete_object)] == ["a", "b"]
    assert World({aws.s3.list_objects_v2: {}}).run(page.emptied, "invoices").output == 0


def test_the_states_are_those_of_step_functions(page: ModuleType) -> None:
    compiled = compile_workflow(page.stored)
    state = compiled.asl["States"]["aws.s3.get_object"]
    assert state["Resource"] == "arn:aws:states:::aws-sdk:s3:getObject"
    assert state["Arguments"] == {"Bucket": "invoices", "Key": "{% $key %}"}
    assert state["TimeoutSeconds"] == 10
    # The deployment needs no function for them.
    assert compiled.tasks == ()
    assert Registry.from_modules([page.__name__]).tasks == {}


def test_the_target_step_functions_keeps_the_calls(
    page: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from holdfast import cli

    monkeypatch.chdir(Path(str(page.__file__)).parent)
    assert cli.main(["compile", page.__name__, "--target", "stepfunctions"]) == 0
    capsys.readouterr()
    (written,) = Path().rglob("stored*.asl.json")
    states = json.loads(written.read_text())["States"]
    assert states["aws.s3.get_object"]["Resource"] == "arn:aws:states:::aws-sdk:s3:getObject"


def test_a_plain_call_of_a_service_says_what_stands_in_for_the_engine(page: ModuleType) -> None:
    with pytest.raises(WorkflowError) as refused:
        page.stored("o1")
    assert refused.value.code == "HF186"


@pytest.mark.parametrize(
    ("service", "method", "target"),
    [
        ("s3", "list_objects_v2", "aws-sdk:s3:listObjectsV2"),
        ("events", "put_events", "aws-sdk:eventbridge:putEvents"),
        ("cognitoidp", "admin_get_user", "aws-sdk:cognitoidentityprovider:adminGetUser"),
        ("lambda_", "invoke", "aws-sdk:lambda:invoke"),
        ("stepfunctions", "start_execution", "aws-sdk:sfn:startExecution"),
        ("rds", "create_db_instance", "aws-sdk:rds:createDBInstance"),
    ],
)
def test_the_names_of_boto3_lead_to_those_of_step_functions_and_back(
    service: str, method: str, target: str
) -> None:
    assert action_of(service, method).target == target
    assert python_name(target) == f"aws.{service}.{method}"


def test_a_module_of_the_package_is_not_taken_for_a_service() -> None:
    from holdfast.aws import names, vault

    assert names is sys.modules["holdfast.aws.names"]
    assert vault is sys.modules["holdfast.aws.vault"]
    assert aws.s3.put_object is aws.s3.put_object
