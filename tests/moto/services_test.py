"""Calls of services in workflows on the local cloud, whose S3 and SQS answer."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

import holdfast
from holdfast.local.clock import VirtualClock
from holdfast.local.serve import serving
from holdfast.local.stack import deployment_of, local_stack
from tests.moto.endpoint_test import packed
from tests.moto.schedules_test import ask, written

# One local cloud at a time in a process, and one group runs in one process.
pytestmark = pytest.mark.xdist_group("serve")

MODULE = """
from pydantic import BaseModel
from holdfast import aws, workflow

NoSuchKey = aws.error("S3.NoSuchKeyException")

class Order(BaseModel):
    id: str
    cents: int

@workflow
def archived(order: Order) -> str:
    aws.s3.create_bucket(Bucket="orders")
    missing = ""
    try:
        aws.s3.get_object(Bucket="orders", Key=order.id)
    except NoSuchKey:
        missing = "no such key"
    aws.s3.put_object(Bucket="orders", Key=order.id, Body=order)
    found = aws.s3.get_object(Bucket="orders", Key=order.id)
    text: str = found["Body"]
    return f"{missing}: {text}"
"""


def test_a_workflow_stores_and_reads_an_object_and_catches_the_services_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = written(tmp_path, monkeypatch, "archived_by_services", MODULE)
    with local_stack(deployment_of([name]), VirtualClock(1_800_000_000_000)) as stack:
        order = {"id": "o1", "cents": 500}
        request = {"workflow": "archived", "name": "o1", "input": {"order": order}}
        ask(stack, stack.host.front.start("default", request, b"x" * 32))
        stack.pump.run_until_idle()
        found = ask(stack, stack.host.front.describe("default", "o1"))
        assert found["status"] == "SUCCEEDED", found
        assert found["output"] == 'no such key: {"id":"o1","cents":500}'


FUNCTION = """
from holdfast import TaskError, lambda_handler, task, task_context

class TooHeavy(TaskError): ...

@task
def weigh(parcel: str) -> dict[str, object]:
    if parcel == "anvil":
        raise TooHeavy("70 kg")
    return {"grams": 5, "seen": task_context().workflow}

handler = lambda_handler(weigh)
"""
WEIGHED = """
from pydantic import BaseModel
from holdfast import Lambda, TaskError, task, workflow

class TooHeavy(TaskError): ...

class Weight(BaseModel):
    grams: int
    seen: str

@task(runs_on=Lambda("arn:aws:lambda:us-east-1:123456789012:function:weigh"))
def weigh(parcel: str) -> Weight: ...

@workflow
def weighed(parcel: str) -> str:
    try:
        found = weigh(parcel)
    except TooHeavy as error:
        return f"too heavy: {error}"
    return f"{found.grams} {found.seen}"
"""


def test_a_task_runs_on_a_function_that_exists_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = written(tmp_path, monkeypatch, "weighed_on_lambda", WEIGHED)
    with serving(deployment_of([name]), port=0) as served:
        functions = boto3.client(
            "lambda",
            endpoint_url=served.url,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        functions.create_function(
            FunctionName="weigh",
            Runtime="python3.13",
            Handler="handler.handler",
            Role="arn:aws:iam::123456789012:role/any",
            Code={"ZipFile": packed(handler=FUNCTION)},
        )
        client = holdfast.Client(served.url)
        light = client.start("weighed", {"parcel": "feather"})
        heavy = client.start("weighed", {"parcel": "anvil"})
        assert light.result(timeout=20) == "5 weighed"
        assert heavy.result(timeout=20) == "too heavy: 70 kg"
