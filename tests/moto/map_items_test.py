"""Items of a distributed Map read from the laptop's S3, and its results written there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto.s3.models import s3_backends

from holdfast.integrations import Integrations, ServiceClients
from holdfast.local import corrections, intercept, wall
from holdfast.runtime.effects import TaskFailed, TaskSucceeded
from tests.unit.s3_kit import errand

NOW_MS = 1_772_600_767_000
ARN = "arn:aws:states:eu-west-1:123456789012:mapRun:m/L:run-uuid"


@pytest.fixture(scope="module")
def clients() -> Iterator[ServiceClients]:
    corrections.install()
    intercept.begin(lambda: NOW_MS)
    session = wall.quiet_session()
    session.set_credentials("local", "local")
    found = ServiceClients(session, "us-east-1", clock=lambda: NOW_MS / 1_000)
    found.get("s3").create_bucket(Bucket="items")
    yield found
    intercept.end()


@pytest.fixture(scope="module")
def perform(clients: ServiceClients) -> Callable[[str, str, Any], Any]:
    def nobody(*_: Any) -> Any:
        raise AssertionError("the API is not asked")

    integrations = Integrations(clients, nobody)
    return lambda kind, name, arguments: integrations.perform(errand(kind, name, arguments))


def test_an_object_is_read(clients: ServiceClients, perform: Any) -> None:
    clients.get("s3").put_object(Bucket="items", Key="a.csv", Body=b"n\n1\n2\n")
    where = {"Bucket": "items", "Key": "a.csv"}
    config = {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}
    found = perform("read", "s3:getObject", {"parameters": where, "config": config})
    sources = [["S3://items/a.csv", 2]]
    assert found == TaskSucceeded({"items": [{"n": "1"}, {"n": "2"}], "sources": sources})


def test_every_page_of_a_listing_is_read(clients: ServiceClients, perform: Any) -> None:
    # In moto itself: 1,003 requests would take six seconds.
    backend = s3_backends["123456789012"]["aws"]
    for number in range(1_003):
        backend.put_object("items", f"many/{number:04d}", b"x")
    where = {"Bucket": "items", "Prefix": "many/"}
    found = perform("read", "s3:listObjectsV2", {"parameters": where, "config": {}})
    assert isinstance(found, TaskSucceeded)
    assert len(found.output["items"]) == 1_003
    last = found.output["items"][-1]
    assert (last["Key"], last["Size"], last["StorageClass"]) == ("many/1002", 1, "STANDARD")
    assert isinstance(last["LastModified"], float)


def test_a_missing_object_is_s3s_own_refusal(perform: Any) -> None:
    where = {"Bucket": "items", "Key": "none"}
    found = perform("read", "s3:getObject", {"parameters": where, "config": {"InputType": "JSON"}})
    assert isinstance(found, TaskFailed)
    assert found.error == "States.ItemReaderFailed"
    assert str(found.cause).startswith(
        "The specified key does not exist. (Service: Amazon S3; Status Code: 404; "
        "Error Code: NoSuchKey; Request ID: "
    )


def test_results_are_written(clients: ServiceClients, perform: Any) -> None:
    arguments = {
        "parameters": {"Bucket": "items", "Prefix": "out"},
        "config": {"Transformation": "COMPACT", "OutputType": "JSON"},
        "map_run_arn": ARN,
        "is_express": False,
        "inputs": [1],
        "results": [{"status": "SUCCEEDED", "started_ms": 0, "stopped_ms": 1, "output": "é"}],
        "failure": None,
    }
    found = perform("write", "s3:putObject", arguments)
    assert isinstance(found, TaskSucceeded)
    client = clients.get("s3")
    key = found.output["ResultWriterDetails"]["Key"]
    manifest = json.load(client.get_object(Bucket="items", Key=key)["Body"])
    (file,) = manifest["ResultFiles"]["SUCCEEDED"]
    written = client.get_object(Bucket="items", Key=file["Key"])
    assert written["ContentLength"] == file["Size"]
    assert json.load(written["Body"]) == ["é"]


def test_a_bucket_that_is_not_there_fails_the_writer(perform: Any) -> None:
    arguments = {
        "parameters": {"Bucket": "none", "Prefix": "out"},
        "config": {},
        "map_run_arn": ARN,
        "is_express": False,
        "inputs": [],
        "results": [],
        "failure": None,
    }
    found = perform("write", "s3:putObject", arguments)
    assert isinstance(found, TaskFailed)
    assert found.error == "States.ResultWriterFailed"
    assert "Error Code: NoSuchBucket" in str(found.cause)
