"""The cost calculator against an independent DynamoDB, ministack, which bills each call it answers.

Goal: `cost` is not our own opinion. Method: the same calls, priced by both. Not compared: reads of
more than 4 KB, which ministack bills as one unit, and refused puts, which it does not bill aloud.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.session import Session

from holdfast import cost, resources
from holdfast.aws.store import attributes_of
from holdfast.runtime.effects import Item

pytestmark = pytest.mark.slow

MINISTACK = "ministack==1.5.33"
START_SECONDS_MAX = 60
TABLE = "executions"
LISTED: Item = {"lp": "default#order#SUCCEEDED#1", "ls": "000001760000000#r"}
SIZES = (0, 500, 900, 1_000, 1_100, 2_000, 3_000, 4_000, 5_000, 16_384, 100_000, 350_000)


@pytest.fixture(scope="module")
def dynamodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    uvx = Path(sys.executable).with_name("uvx")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("ministack") / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [uvx, "--from", MINISTACK, "--with", "boto3", "ministack"],
            env={**os.environ, "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port)},
            cwd=log.parent,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        wait_for(endpoint, server, log)
        yield client(endpoint)
    finally:
        server.terminate()
        server.wait(timeout=20)


def wait_for(endpoint: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(START_SECONDS_MAX * 4):
        if server.poll() is not None:
            pytest.skip(f"ministack cannot be had here: {log.read_text()[-500:]}")
        try:
            urllib.request.urlopen(endpoint, timeout=0.25).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            try:
                server.wait(timeout=0.25)
            except subprocess.TimeoutExpired:
                continue
        else:
            return
    pytest.fail(f"ministack did not answer: {log.read_text()[-500:]}")


def client(endpoint: str) -> Any:
    session = Session()
    session.set_credentials("test", "test")
    dynamodb = session.create_client(
        "dynamodb",
        region_name="us-east-1",
        endpoint_url=endpoint,
        config=Config(retries={"total_max_attempts": 1}),
    )
    index = resources.EXECUTIONS.index
    assert index is not None
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind}
            for name, kind in (("pk", "S"), ("sk", "N"), ("lp", "S"), ("ls", "S"))
        ],
        BillingMode="PAY_PER_REQUEST",
        GlobalSecondaryIndexes=[
            {
                "IndexName": index.name,
                "KeySchema": [
                    {"AttributeName": "lp", "KeyType": "HASH"},
                    {"AttributeName": "ls", "KeyType": "RANGE"},
                ],
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": list(index.projected),
                },
            }
        ],
    )
    return dynamodb


def record(run: str, size: int, **attributes: Any) -> dict[str, Any]:
    key = {"pk": f"default#{run}", "sk": 0}
    return {**key, "ev": bytes(size), "at": 1_760_000_000_123, **attributes}


def put(dynamodb: Any, item: Item, **conditions: Any) -> float:
    answer = dynamodb.put_item(
        TableName=TABLE, Item=attributes_of(item), ReturnConsumedCapacity="TOTAL", **conditions
    )
    return float(answer["ConsumedCapacity"]["CapacityUnits"])


@pytest.mark.parametrize("size", SIZES)
def test_a_new_record_costs_what_we_say(dynamodb: Any, size: int) -> None:
    item = record(f"new-{size}", size)
    assert put(dynamodb, item) == cost.put_units(resources.EXECUTIONS, None, item)


@pytest.mark.parametrize("size", SIZES)
def test_a_listed_record_costs_what_we_say(dynamodb: Any, size: int) -> None:
    item = record(f"listed-{size}", size, **LISTED)
    assert put(dynamodb, item) == cost.put_units(resources.EXECUTIONS, None, item)


CHANGES: dict[str, Item] = {
    "the same again": {},
    "another name": {"nm": "o-1"},
    "another place in the list": {"lp": "default#order#FAILED#1"},
    "more history": {"ev": bytes(5_000)},
    "less history": {"ev": b""},
    "a long error": {"er": "x" * 3_000},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("size", [10, 3_000])
def test_a_replaced_record_costs_what_we_say(dynamodb: Any, change: str, size: int) -> None:
    before = record("replaced", size, **LISTED)
    after: Item = {**before, **CHANGES[change]}
    put(dynamodb, before)

    assert put(dynamodb, after) == cost.put_units(resources.EXECUTIONS, before, after)


@pytest.mark.parametrize("size", [10, 3_000])
def test_leaving_the_list_and_being_deleted_cost_what_we_say(dynamodb: Any, size: int) -> None:
    listed, unlisted = record("unlisted", size, **LISTED), record("unlisted", size)
    put(dynamodb, listed)
    request = {
        "TableName": TABLE,
        "Key": attributes_of({"pk": listed["pk"], "sk": 0}),
        "ReturnConsumedCapacity": "TOTAL",
    }
    update = dynamodb.update_item(**request, UpdateExpression="REMOVE lp, ls")
    delete = dynamodb.delete_item(**request)
    delete_of_nothing = dynamodb.delete_item(**request)

    for answer, before, after in (
        (update, listed, unlisted),
        (delete, unlisted, None),
        (delete_of_nothing, None, None),
    ):
        units = cost.put_units(resources.EXECUTIONS, before, after)
        assert answer["ConsumedCapacity"]["CapacityUnits"] == units


@pytest.mark.parametrize(
    "attributes",
    [{"n": 7}, {"n": -42}, {"n": 100}, {"n": 123_456}, {"n": 10**20}, {"t": "Zoë €"}, {"t": ""}],
    ids=str,
)
def test_a_kilobyte_ends_at_the_byte_at_which_we_say(
    dynamodb: Any, attributes: dict[str, Any]
) -> None:
    empty = record("boundary", 0, **attributes)
    room = 1_024 - cost.item_bytes(empty)

    for size, units in ((room, 1), (room + 1, 2)):
        dynamodb.delete_item(TableName=TABLE, Key=attributes_of({"pk": empty["pk"], "sk": 0}))
        assert put(dynamodb, record("boundary", size, **attributes)) == units


@pytest.mark.parametrize("is_strong", [True, False])
def test_a_read_of_less_than_four_kilobytes_costs_what_we_say(
    dynamodb: Any, is_strong: bool
) -> None:
    """ministack bills every read as one unit, whatever its size; larger ones are not compared."""
    item = record("read", 3_000)
    put(dynamodb, item)
    how = {"TableName": TABLE, "ConsistentRead": is_strong, "ReturnConsumedCapacity": "TOTAL"}
    condition = "pk = :pk"
    answers = [
        (dynamodb.get_item(Key=attributes_of({"pk": item["pk"], "sk": 0}), **how), [item]),
        *(
            (
                dynamodb.query(
                    KeyConditionExpression=condition,
                    ExpressionAttributeValues={":pk": {"S": pk}},
                    **how,
                ),
                found,
            )
            for pk, found in ((str(item["pk"]), [item]), ("nobody", []))
        ),
    ]
    for answer, found in answers:
        size = sum(map(cost.item_bytes, found))
        units = cost.read_units(size, is_strong=is_strong)
        assert answer["ConsumedCapacity"]["CapacityUnits"] == units
