"""Distributed Maps that AWS recorded, against ours, with the objects of S3 in memory.

Chosen by what a definition uses, never by its id. Off which event the Map's exit hangs is not
compared: AWS changed it in 2024, from the end of the run to its start, which is what we do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.integrations import item_reader
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from tests.unit.s3_kit import Bucket
from tests.unit.stack_kit import Stack

CASES = Path(__file__).parents[2].parent / "shared" / "conformance" / "cases.jsonl"

Case = dict[str, Any]


def _cases() -> list[Case]:
    if not CASES.exists():
        return []
    found = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [case for case in found if _is_distributed(case)]


def _is_distributed(case: Case) -> bool:
    is_alone = case["kind"] == "execution" and set(case["services"]) <= {"s3"}
    return is_alone and "events" in case["expected"] and "DISTRIBUTED" in case["definition"]


@pytest.fixture(params=_cases(), ids=lambda case: case["id"].rpartition("::")[2])
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def test_the_recordings_are_there() -> None:
    if not CASES.exists():
        pytest.skip(f"the recordings are not at {CASES}")
    assert len(_cases()) > 20


def test_an_execution_ends_as_it_did_on_aws_with_the_same_events(case: Case) -> None:
    stack = Stack(case["definition"], _reader(case))
    arn = stack.start(json.loads(case["input"]))
    stack.world.run()
    ended = stack.call("DescribeExecution", executionArn=arn)
    expected = case["expected"]
    for field in ("status", "output", "error", "cause"):
        assert _parsed(ended.get(field)) == _parsed(expected.get(field)), field
    history = stack.call("GetExecutionHistory", executionArn=arn)["events"]
    assert [_link(event) for event in history] == [_link(event) for event in expected["events"]]


def _reader(case: Case) -> Any:
    """Put the objects of the case into its bucket, under that bucket's name."""
    puts = [step["params"] for step in case["steps"] if step.get("action") == "put_object"]
    bucket = Bucket()
    for put in puts:
        bucket.name = put["Bucket"]
        bucket.objects[put["Key"]] = put["Body"].encode()

    def read(effect: RunTask) -> TaskSucceeded | TaskFailed:
        assert effect.kind == "read"
        return item_reader.read(effect, bucket)

    return read


def _parsed(value: Any) -> Any:
    """Recordings hold some texts of JSON as values."""
    if isinstance(value, str) and value[:1] in {"[", "{"}:
        return json.loads(value)
    return value


def _link(event: Case) -> tuple[Any, ...]:
    previous = None if event["type"] == "MapStateExited" else event.get("previousEventId", 0)
    return event["id"], previous, event["type"]
