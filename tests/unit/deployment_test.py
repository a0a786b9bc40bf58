"""A deployment: modules, their compiled definitions, and user code that may do anything."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.compiler.compile import compile_workflow
from holdfast.deployment import Deployment, load_compiled
from holdfast.errors import GoneTypeError, RequestError, WorkflowError
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX
from holdfast.runtime.commands.tokens import SigningKeys
from holdfast.runtime.effects import RunTask, TaskFailed, TaskResult, TaskSucceeded
from holdfast.runtime.storage import json_values

ROOT = Path(__file__).parents[2]
MODULE = """
from dataclasses import dataclass

from pydantic import BaseModel, field_validator

from holdfast import TaskError, task, task_context, workflow


class Order(BaseModel):
    id: str
    pence: int = 5

    @field_validator("id")
    @classmethod
    def known(cls, value: str) -> str:
        return {"o1": value}[value]


class Coded(TaskError):
    code: str

    def __init__(self, code):
        super().__init__("coded")
        self.code = code


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@task
def charge(order: Order) -> str:
    context = task_context()
    return f"{order.id} {context.name} {context.attempt} {context.idempotency_key}"


@task
def fail(kind: str) -> str:
    if kind == "unprintable":
        raise Unprintable
    if kind == "coded":
        raise Coded("51")
    if kind == "long":
        raise ValueError("x" * 99_999)
    raise LookupError(kind)


@task
def odd(kind: str) -> object:
    match kind:
        case "surrogate":
            return chr(0xD800)
        case "deep":
            value: list = []
            for _ in range(100):
                value = [value]
            return value
        case _:
            return "x" * 2_000


@workflow
def shopping(order: Order) -> str:
    fail("never")
    return charge(order)
"""


def compiled(workflow: Any) -> tuple[Any, dict[str, Any]]:
    found = compile_workflow(workflow)
    return found.asl, json.loads(found.map_text)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("flows")
    (folder / "shopping_flows.py").write_text(textwrap.dedent(MODULE))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield "shopping_flows"
        sys.modules.pop("shopping_flows", None)


@pytest.fixture(scope="module")
def deployment(module: str) -> Deployment:
    return Deployment.from_modules([module], compiled)


def run(deployment: Deployment, name: str, arguments: Any) -> TaskResult:
    return deployment.run_task(
        RunTask(
            name=name,
            kind="task",
            arguments=arguments,
            tenant="default",
            run="r1",
            run_name="order-1",
            workflow="shopping",
            entry=3,
            attempt=2,
            deadline_ms=0,
        )
    )


def test_a_task_gets_its_types_and_knows_its_execution(deployment: Deployment) -> None:
    assert run(deployment, "charge", {"order": {"id": "o1"}}) == TaskSucceeded("o1 order-1 2 r1.3")


def test_whatever_user_code_raises_is_the_error_of_its_attempt(deployment: Deployment) -> None:
    odd = run(deployment, "fail", {"kind": "odd"})
    assert isinstance(odd, TaskFailed)
    assert (odd.error, odd.cause) == ("LookupError", "odd")
    unprintable = run(deployment, "fail", {"kind": "unprintable"})
    assert isinstance(unprintable, TaskFailed)
    assert unprintable.error == "Unprintable"
    assert unprintable.cause == "Unprintable has no printable text"
    long = run(deployment, "fail", {"kind": "long"})
    assert isinstance(long, TaskFailed)
    assert long.cause is not None and long.error is not None
    assert (len(long.cause), len(long.error) <= ERROR_CHARACTERS_MAX) == (
        CAUSE_CHARACTERS_MAX,
        True,
    )


def test_the_fields_of_an_error_are_in_its_cause(deployment: Deployment) -> None:
    failed = run(deployment, "fail", {"kind": "coded"})
    assert isinstance(failed, TaskFailed)
    assert failed.cause == '{"message":"coded","fields":{"code":"51"}}'


@pytest.mark.parametrize("kind", ["surrogate", "deep", "large"])
def test_a_result_that_cannot_be_stored_fails_its_attempt(
    deployment: Deployment, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_values, "VALUE_BYTES_MAX", 1_000)
    failed = run(deployment, "odd", {"kind": kind})

    assert isinstance(failed, TaskFailed)
    assert failed.error == "InvalidResult"
    assert str(failed.cause).startswith("the result of odd")


def test_arguments_that_do_not_fit_fail_the_attempt_and_not_the_worker(
    deployment: Deployment,
) -> None:
    assert isinstance(run(deployment, "charge", {"order": {"pence": "many"}}), TaskFailed)
    assert isinstance(run(deployment, "charge", None), TaskFailed)


def test_a_deployment_knows_its_own_functions_by_kind(deployment: Deployment) -> None:
    assert deployment.knows("charge", False)
    assert not deployment.knows("charge", True)
    assert not deployment.knows("other", False)


def test_an_input_is_filled_up_or_refused_at_the_door(deployment: Deployment) -> None:
    filled = deployment.normalise_input("T", "shopping", {"order": {"id": "o1"}})
    assert filled == {"order": {"id": "o1", "pence": 5}}
    with pytest.raises(RequestError) as caught:
        deployment.normalise_input("T", "shopping", {"order": {"pence": "many"}})

    assert (caught.value.code, caught.value.status) == ("HF210", 400)


def test_a_payload_is_filled_up_or_refused_at_the_door(deployment: Deployment) -> None:
    reference = "shopping_flows:Order"
    filled = deployment.normalise_payload("T", reference, {"id": "o1"}, "event 'paid'")
    assert filled == {"id": "o1", "pence": 5}
    with pytest.raises(RequestError) as caught:
        deployment.normalise_payload("T", reference, {"pence": 5}, "event 'paid'")

    assert caught.value.code == "HF211"
    assert caught.value.message.startswith("the event 'paid' does not fit Order")


@pytest.mark.parametrize(
    "name", ["shopping_flows:Basket", "shopping_flows:charge", "no_such_flows:Order", "list[no:No]"]
)
def test_a_removed_type_is_distinguished_from_a_value_that_does_not_fit(
    deployment: Deployment, name: str
) -> None:
    with pytest.raises(GoneTypeError):
        deployment.normalise_payload("T", name, {"id": "o1"}, "event 'paid'")


def test_a_type_whose_module_cannot_be_imported_is_refused_with_the_kind_of_error(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_flows.py").write_text("{}['a password']")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(RequestError) as caught:
        deployment.normalise_payload("T", "broken_flows:Order", {}, "event 'paid'")

    told = (caught.value.code, caught.value.message)
    assert told == ("HF211", "the event 'paid' cannot be validated: KeyError")


def test_an_error_of_the_authors_validator_is_reported_by_its_kind(
    deployment: Deployment,
) -> None:
    bomb = {"id": "my card's number"}
    with pytest.raises(RequestError) as at_start:
        deployment.normalise_input("T", "shopping", {"order": bomb})
    with pytest.raises(RequestError) as at_event:
        deployment.normalise_payload("T", "shopping_flows:Order", bomb, "event 'paid'")

    told = (at_start.value.code, at_start.value.message)
    assert told == ("HF210", "the input of shopping cannot be validated: KeyError")
    told = (at_event.value.code, at_event.value.message)
    assert told == ("HF211", "the event 'paid' cannot be validated: KeyError")


def test_the_api_serves_the_deployed_workflows(deployment: Deployment) -> None:
    programs = deployment.programs()
    front = deployment.front(programs, SigningKeys("1", {"1": b"secret"}))
    definition = deployment.definitions["shopping"]

    assert front.workflows == {"shopping": definition}
    assert programs.is_known("default", definition.hash)
    assert deployment.setting(programs, lambda: SigningKeys("k", {"k": b"key"})).knows(
        "charge", False
    )


def test_the_error_for_an_uncompiled_workflow_gives_the_fix(module: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        Deployment.from_modules([module])

    assert caught.value.code == "HF102"
    assert "holdfast compile shopping_flows" in caught.value.help


def test_the_definition_compiled_beside_the_module_is_read(
    module: str, deployment: Deployment
) -> None:
    workflow = deployment.registry.workflows["shopping"]
    folder = Path(str(sys.modules[module].__file__)).parent
    (folder / "shopping.asl.json").write_text(json.dumps({"StartAt": "a"}))
    (folder / "shopping.map.json").write_text(json.dumps({"events": {}}))
    try:
        assert load_compiled(workflow) == ({"StartAt": "a"}, {"events": {}})
    finally:
        (folder / "shopping.asl.json").unlink()
        (folder / "shopping.map.json").unlink()


def test_a_function_starts_without_the_heavy_libraries() -> None:
    heavy = ["pydantic", "moto", "aws_cdk", "aws_lambda_powertools", "rich", "jsonata"]
    program = (
        "import sys; import holdfast.aws.entry; "
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert shown.stdout.strip() == "[]"
