"""Calls of services in workflows on the local cloud, whose S3 and SQS answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.local.clock import VirtualClock
from holdfast.local.stack import deployment_of, local_stack
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
