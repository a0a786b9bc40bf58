"""Workflows that were compiled for AWS Step Functions, run by its API with Lambda functions."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import boto3
import pytest

from holdfast.api.surface import Workflow
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.source import Source
from holdfast.compiler.targets.states import Placeholder
from holdfast.compiler.targets.targets import to_step_functions
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of
from statemachines import order_fulfilment, shop
from tests.moto import targets_workflows as small

PATIENCE_SECONDS = 30
ROLE = "arn:aws:iam::123456789012:role/orders"
ACCESS = {
    "region_name": "us-east-1",
    "aws_access_key_id": "local",
    "aws_secret_access_key": "local",
}
#: The functions that a user deploys: a handler for each task, and one that answers for the bank.
FUNCTIONS = """
import json

import boto3

from holdfast import lambda_handler
from statemachines import shop
from tests.moto import targets_workflows as small

reserve = lambda_handler(shop.reserve)
release = lambda_handler(shop.release)
charge = lambda_handler(shop.charge)
refund = lambda_handler(shop.refund)
pack = lambda_handler(shop.pack)
ship = lambda_handler(shop.ship)
notify = lambda_handler(shop.notify)
turn_down = lambda_handler(shop.turn_down)
refuse = lambda_handler(small.refuse)
second_time = lambda_handler(small.second_time)
key = lambda_handler(small.key)


def wait_for_event(event, context):
    assert event["event"] == "bank.confirmed"
    settled = {"payment_id": event["key"], "settled": not event["key"].endswith("20")}
    boto3.client("stepfunctions").send_task_success(
        taskToken=event["token"], output=json.dumps(settled)
    )
"""
HARD_TEXT = 'it said "no" \\ \n\t {"errorMessage": "x"} \u00fc \U0001f600'


@dataclass
class Account:
    """An account: it deploys the functions that a workflow needs, and runs the workflow."""

    endpoint_url: str
    arns: dict[str, str] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        return boto3.client(service, **ACCESS, endpoint_url=self.endpoint_url)

    def run(self, workflow: Workflow[..., Any], module: ModuleType, given: object) -> Any:
        """Return the execution's description, when it has ended."""
        machine = self.machine(workflow, module)
        states = self.client("stepfunctions")
        started = states.start_execution(stateMachineArn=machine, input=json.dumps(given))
        arn, deadline = started["executionArn"], time.monotonic() + PATIENCE_SECONDS
        while (found := states.describe_execution(executionArn=arn))["status"] == "RUNNING":
            assert time.monotonic() < deadline, found
            time.sleep(0.01)
        return found

    def machine(self, workflow: Workflow[..., Any], module: ModuleType) -> str:
        name = f"machine-{workflow.name}"
        if name not in self.arns:
            exported = to_step_functions(compile_workflow(workflow), Source.of(module))
            text = exported.asl_text
            for placeholder, need in exported.placeholders.items():
                text = text.replace(f"${{{placeholder}}}", self.meet(need, placeholder, module))
            made = self.client("stepfunctions").create_state_machine(
                name=workflow.name, definition=text, roleArn=ROLE
            )
            self.arns[name] = made["stateMachineArn"]
        return self.arns[name]

    def meet(self, need: Placeholder, name: str, module: ModuleType) -> str:
        if need.kind == "workflow":
            return self.machine(getattr(module, need.name), module)
        if name not in self.arns:
            self.arns[name] = self.function(name)
        return self.arns[name]

    def function(self, name: str) -> str:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("app.py", FUNCTIONS)
        made = self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.13",
            Handler=f"app.{name}",
            Role=ROLE,
            Code={"ZipFile": packed.getvalue()},
            Environment={"Variables": {"AWS_ENDPOINT_URL": self.endpoint_url}},
        )
        arn: str = made["FunctionArn"]
        return arn


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with serving(deployment_of([]), port=0) as served:
        yield Account(served.url)


def order(number: int) -> dict[str, Any]:
    """The last two digits of its number are its fate (statemachines/fates.py)."""
    line = {"sku": "22423", "description": None, "qty": 2, "unit_pence": 1275}
    lines = [line, {**line, "sku": "85123A"}, {**line, "sku": "POST"}]
    head = {"id": str(number), "placed_at": "2010-12-01T08:26:00", "customer_id": None}
    return {**head, "country": "Norway", "lines": lines}


@pytest.mark.parametrize(
    ("number", "status", "reason"),
    [
        (536400, "shipped", "shipped"),
        # The bank is down at the first attempt: the task counts its attempts.
        (536403, "shipped", "shipped"),
        # The bank confirms by an event.
        (536405, "shipped", "shipped"),
        # An error by its class, an error in an iteration, one that the workflow raises itself.
        (536407, "failed", "card_declined"),
        (536413, "failed", "out_of_stock"),
        (536420, "failed", "payment_not_settled"),
        # Refused before the first step.
        ("C536400", "refused", "cancellation"),
    ],
)
def test_an_order_ends_on_step_functions_as_in_the_engine(
    account: Account, number: Any, status: str, reason: str
) -> None:
    ended = account.run(order_fulfilment.fulfil, order_fulfilment, {"order": order(number)})
    assert ended["status"] == "SUCCEEDED", (ended["error"], ended["cause"])
    tracking = f"track-{number}" if status == "shipped" else None
    outcome = shop.Outcome(order_id=str(number), status=status, reason=reason, tracking=tracking)
    assert json.loads(ended["output"]) == outcome.model_dump()


@pytest.mark.parametrize("text", ["plain", "", HARD_TEXT])
@pytest.mark.parametrize(
    "name", ["text_of_an_error", "text_from_a_branch", "text_of_a_failed_undo", "parent"]
)
def test_the_text_of_an_error_is_the_one_that_was_raised(
    account: Account, name: str, text: str
) -> None:
    workflow = getattr(small, name)
    ended = account.run(workflow, small, {"text": text})
    assert ended["status"] == "SUCCEEDED", (ended["error"], ended["cause"])
    assert json.loads(ended["output"]) == workflow(text)


def test_a_retry_keeps_the_key_and_counts_the_attempts(account: Account) -> None:
    ended = account.run(small.retried, small, {"text": "attempt"})
    assert json.loads(ended["output"]) == "attempt 2 of retried"


def test_every_iteration_of_nested_maps_has_a_key_of_its_own(account: Account) -> None:
    ended = account.run(small.many_keys, small, {"text": ""})
    keys = [key for row in json.loads(ended["output"]) for key in row]
    assert len(set(keys)) == 4


def test_an_uncaught_error_of_a_child_keeps_its_name(account: Account) -> None:
    ended = account.run(small.careless_parent, small, {"text": "no"})
    assert (ended["status"], ended["error"]) == ("FAILED", "Closed")


def test_a_child_that_is_late_is_caught_as_a_timeout(account: Account) -> None:
    ended = account.run(small.impatient_parent, small, {"text": "no"})
    assert ended["status"] == "SUCCEEDED", (ended["error"], ended["cause"])
    assert json.loads(ended["output"]) == "late"
