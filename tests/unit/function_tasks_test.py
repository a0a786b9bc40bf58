"""Tasks that run on an existing Lambda function: docs/how-to/services.md."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from holdfast import Lambda, TaskError, lambda_handler, task, task_context
from holdfast.api.harness import harness
from holdfast.aws.function_tasks import elsewhere_of
from holdfast.aws.tasks import TaskRunner
from holdfast.deployment import Deployment
from holdfast.errors import WorkflowError
from holdfast.integrations import Integrations
from holdfast.runtime.effects import RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast.testing import World
from tests.unit.client_kit import _compile
from tests.unit.dsl_kit import loaded
from tests.unit.integrations_kit import Clients
from tests.unit.services_doc_test import ON_LAMBDA

ARN = "arn:aws:lambda:eu-west-1:111122223333:function:weigh"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with loaded(tmp_path_factory.mktemp("functions"), ON_LAMBDA) as module:
        yield module


def answered(payload: object, error: str | None = None) -> dict[str, Any]:
    body = io.BytesIO(json.dumps(payload).encode())
    failed = {} if error is None else {"FunctionError": error}
    return {"StatusCode": 200, "Payload": body, "ResponseMetadata": {}, **failed}


def perform(page: ModuleType, clients: Clients, arguments: Any) -> TaskResult:
    def no_api(*_: Any) -> dict[str, Any]:
        raise AssertionError("no call of Step Functions")

    deployment = Deployment.from_modules([page.__name__], _compile)
    services = Integrations(clients, no_api)  # type: ignore[arg-type]
    tasks = TaskRunner(deployment.run_task, lambda: services, elsewhere_of(deployment))
    return tasks.perform(
        RunTask(
            name="weigh",
            kind="task",
            arguments=arguments,
            tenant="default",
            run="r1",
            run_name="p1",
            workflow="weighed",
            entry=3,
            attempt=2,
            deadline_ms=0,
        )
    )


def test_the_function_gets_the_arguments_with_defaults_and_the_attempt(page: ModuleType) -> None:
    clients = Clients({"invoke": answered({"id": "p1", "grams": "70"})})
    result = perform(page, clients, {"parcel": {"id": "p1"}})
    # The text was converted as the annotation of the result says.
    assert result == TaskSucceeded({"id": "p1", "grams": 70})
    ((_, request),) = clients.calls
    assert request["FunctionName"] == ARN
    assert json.loads(request["Payload"]) == {"parcel": {"id": "p1", "grams": 0}}
    given = json.loads(base64.b64decode(request["ClientContext"]))
    seen: list[str] = []

    @task
    def weigh() -> None:
        seen.append(task_context().idempotency_key)
        seen.append(f"{task_context().workflow} {task_context().attempt}")

    client = SimpleNamespace(custom=given["custom"])
    lambda_handler(weigh)({}, SimpleNamespace(client_context=client))
    assert seen == ["r1.3", "weighed 2"]


@pytest.mark.parametrize(
    ("answer", "error", "cause"),
    [
        (
            answered({"errorType": "TooHeavy", "errorMessage": "70 kg"}, "Unhandled"),
            "TooHeavy",
            "70 kg",
        ),
        (answered({"id": 1}), "InvalidResult", "weigh: result.id: input should be a valid string"),
        (answered(None), "InvalidResult", "weigh: result: "),
        (answered({"id": "\ud800"}), "InvalidResult", "the result of weigh "),
    ],
)
def test_an_error_of_the_function_and_a_wrong_answer_fail_the_attempt(
    page: ModuleType, answer: Any, error: str, cause: str
) -> None:
    result = perform(page, Clients({"invoke": answer}), {"parcel": {"id": "p1"}})
    assert isinstance(result, TaskFailed)
    assert result.error == error
    assert result.cause is not None
    assert result.cause.startswith(cause)


def test_arguments_that_do_not_fit_never_reach_the_function(page: ModuleType) -> None:
    clients = Clients({"invoke": answered(None)})
    result = perform(page, clients, {"parcel": {"grams": 5}})
    assert isinstance(result, TaskFailed)
    assert result.error == "InvalidArguments"
    assert result.cause == "weigh(parcel.id: field required)"
    assert clients.calls == []


def test_the_kit_scripts_the_task_as_any_other(page: ModuleType) -> None:
    parcel = page.Parcel(id="p1")
    heavier = World({page.weigh: page.Parcel(id="p1", grams=70)})
    assert heavier.run(page.weighed, parcel).output == 70
    assert World({page.weigh: page.TooHeavy("70 kg")}).run(page.weighed, parcel).output == -1


def test_a_plain_call_is_refused_because_the_body_is_not_the_task(page: ModuleType) -> None:
    assert harness.get() is None
    with pytest.raises(WorkflowError) as refused:
        page.weigh(page.Parcel(id="p1"))
    assert refused.value.code == "HF186"


@pytest.mark.parametrize(
    "arn", ["weigh", "arn:aws:states:::aws-sdk:s3:putObject", "arn:aws:lambda:eu-west-1:1:layer:x"]
)
def test_only_the_arn_of_a_function_is_one(arn: str) -> None:
    with pytest.raises(WorkflowError) as refused:
        Lambda(arn)
    assert refused.value.code == "HF188"


def test_a_body_with_code_is_refused_and_an_empty_one_is_not() -> None:
    make = task(runs_on=Lambda(ARN))

    def nothing(x: int) -> None: ...

    def described(x: int) -> None:
        """Weigh."""

    def raising(x: int) -> str:
        raise NotImplementedError

    def adding(x: int) -> int:
        return x + 1

    def constant(x: int) -> str:
        return "x"

    def other(x: int) -> str:
        raise TaskError

    for empty in (nothing, described, raising):
        make(empty)
    for full in (adding, constant, other):
        with pytest.raises(WorkflowError) as refused:
            make(full)
        assert refused.value.code == "HF189"
