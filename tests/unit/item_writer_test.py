"""The destination of a distributed Map's results: files by the children's ends, and their
manifest.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.integrations import item_writer
from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from tests.unit.s3_kit import Bucket, errand

ARN = "arn:aws:states:eu-west-1:123456789012:mapRun:m/L:run-uuid"
TIMES = {"started_ms": 1_772_600_767_001, "stopped_ms": 1_772_600_768_000}


def ended(status: str = "SUCCEEDED", **fields: Any) -> Any:
    return {"status": status, **TIMES, **fields}


class Written(Bucket):
    """The bucket after the results of children with the inputs 0, 1, … are written."""

    def __init__(self, *results: Any, bucket: str = "b", prefix: str | None = "p", **config: str):
        super().__init__()
        arguments = {
            "parameters": {"Bucket": bucket, **({} if prefix is None else {"Prefix": prefix})},
            "config": config,
            "map_run_arn": ARN,
            "is_express": False,
            "inputs": list(range(len(results))),
            "results": list(results),
            "failure": None,
        }
        self.result = item_writer.write(errand("write", "s3:putObject", arguments), self)

    def file(self, name: str) -> Any:
        return json.loads(self.objects[f"p/run-uuid/{name}"])

    @property
    def manifest(self) -> Any:
        return self.file("manifest.json")


def test_the_output_says_where_the_manifest_is() -> None:
    details = {"Bucket": "b", "Key": "p/run-uuid/manifest.json"}
    expected = TaskSucceeded({"MapRunArn": ARN, "ResultWriterDetails": details})
    assert Written(ended(output=1)).result == expected


def test_without_a_prefix_the_run_is_the_folder() -> None:
    assert "run-uuid/manifest.json" in Written(prefix=None).objects
    assert "p/run-uuid/manifest.json" in Written(prefix="p/").objects


def test_a_child_that_succeeded_is_a_record() -> None:
    name = "01run-3-0"
    assert Written(ended(output={"a": 1})).file("SUCCEEDED_0.json") == [
        {
            "ExecutionArn": f"arn:aws:states:eu-west-1:123456789012:execution:m/L:{name}",
            "Input": "0",
            "InputDetails": {"Included": True},
            "Name": name,
            "Output": '{"a":1}',
            "OutputDetails": {"Included": True},
            "RedriveCount": 0,
            "RedriveStatus": "NOT_REDRIVABLE",
            "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
            "StartDate": "2026-03-04T05:06:07.001Z",
            "StateMachineArn": "arn:aws:states:eu-west-1:123456789012:stateMachine:m/L",
            "Status": "SUCCEEDED",
            "StopDate": "2026-03-04T05:06:08.000Z",
        }
    ]


def test_children_are_in_files_by_how_they_ended() -> None:
    failed = ended("FAILED", error="E", cause="C")
    written = Written(ended(output=1), failed, ended("TIMED_OUT"), {"status": "ABORTED"}, None)
    files = {name: written.file(f"{name}_0.json") for name in ("SUCCEEDED", "FAILED", "PENDING")}
    statuses = {name: [record["Status"] for record in found] for name, found in files.items()}
    assert statuses == {
        "SUCCEEDED": ["SUCCEEDED"],
        "FAILED": ["FAILED", "TIMED_OUT", "ABORTED"],
        "PENDING": ["PENDING"],
    }
    assert (files["FAILED"][0]["Error"], files["FAILED"][0]["Cause"]) == ("E", "C")
    assert [record["Input"] for record in files["PENDING"]] == ["4"]


def test_the_manifest_lists_the_files_and_their_sizes() -> None:
    written = Written(ended(output=1))
    key = "p/run-uuid/SUCCEEDED_0.json"
    assert written.manifest == {
        "DestinationBucket": "b",
        "MapRunArn": ARN,
        "ResultFiles": {
            "FAILED": [],
            "PENDING": [],
            "SUCCEEDED": [{"Key": key, "Size": len(written.objects[key])}],
        },
    }


def test_outputs_can_be_compact_or_flat() -> None:
    results = [ended(output=[1, 2]), ended(output=3), ended("FAILED")]
    compact = Written(*results, Transformation="COMPACT")
    assert compact.file("SUCCEEDED_0.json") == [[1, 2], 3]
    assert compact.file("FAILED_0.json")[0]["Status"] == "FAILED"
    assert Written(*results, Transformation="FLATTEN").file("SUCCEEDED_0.json") == [1, 2, 3]


def test_results_can_be_lines() -> None:
    written = Written(
        ended(output="é"), ended(output=2), Transformation="COMPACT", OutputType="JSONL"
    )
    assert written.objects["p/run-uuid/SUCCEEDED_0.jsonl"] == '"é"\n2\n'.encode()
    assert written.manifest["ResultFiles"]["SUCCEEDED"][0]["Size"] == 7


def test_files_that_would_be_too_large_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_writer, "RESULT_FILE_BYTES_MAX", 10)
    written = Written(*[ended(output="abc")] * 3, Transformation="COMPACT")
    assert written.file("SUCCEEDED_0.json") == ["abc"]
    assert len(written.manifest["ResultFiles"]["SUCCEEDED"]) == 3


def test_writing_again_gives_the_same_files() -> None:
    assert Written(ended(output=1)).objects == Written(ended(output=1)).objects


def test_a_bucket_that_is_not_there_is_the_cause() -> None:
    result = Written(ended(), bucket="c").result
    assert isinstance(result, TaskFailed)
    assert result.error == "States.ResultWriterFailed"
    assert "Error Code: NoSuchBucket" in str(result.cause)


def test_a_writer_without_a_bucket_is_refused() -> None:
    refused = "The field 'Bucket' is required but was missing"
    assert Written(bucket="").result == TaskFailed("States.ResultWriterFailed", refused)
    wrong: Any = 3
    refused = "The value for the field 'Bucket' must be a STRING"
    assert Written(bucket=wrong).result == TaskFailed("States.ResultWriterFailed", refused)
