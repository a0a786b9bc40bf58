"""The cost calculator against an independent DynamoDB, ministack, which bills each call it answers.

Goal: `cost` is not our own opinion. Method: the same calls, priced by both. Not compared: reads of
more than 4 KB, which ministack bills as one unit, and refused puts, which it does not bill aloud.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import cost, resources
from holdfast.aws.store import attributes_of
from holdfast.local.cloud import table_request
from holdfast.runtime.effects import Item
from tests.contract import ministack

pytestmark = pytest.mark.slow

TABLE = "executions"
LISTED: Item = {"lp": "default#order#SUCCEEDED#1", "ls": "000001760000000#r"}
SIZES = (0, 500, 900, 1_000, 1_100, 2_000, 3_000, 4_000, 5_000, 16_384, 100_000, 350_000)


@pytest.fixture(scope="module")
def dynamodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ministack.serve(tmp_path_factory.mktemp("ministack")) as endpoint:
        client = ministack.clients(endpoint).get("store")
        client.create_table(TableName=TABLE, **table_request(resources.EXECUTIONS))
        yield client


def record(run: str, size: int, **attributes: Any) -> dict[str, Any]:
    key = {"pk": f"default#{run}", "sk": 0}
    return {**key, "ev": bytes(size), "at": 1_760_000_000_123, **attributes}


def put(dynamodb: Any, item: Item, **conditions: Any) -> float:
    answer = dynamodb.put_item(
        TableName=TABLE, Item=attributes_of(item), ReturnConsumedCapacity="TOTAL", **conditions
    )
    return float(answer["ConsumedCapacity"]["CapacityUnits"])


@pytest.mark.parametrize("size", SIZES)
def test_a_new_record_has_the_documented_cost(dynamodb: Any, size: int) -> None:
    item = record(f"new-{size}", size)
    assert put(dynamodb, item) == cost.put_units(resources.EXECUTIONS, None, item)


@pytest.mark.parametrize("size", SIZES)
def test_a_listed_record_has_the_documented_cost(dynamodb: Any, size: int) -> None:
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
def test_a_replaced_record_has_the_documented_cost(dynamodb: Any, change: str, size: int) -> None:
    before = record("replaced", size, **LISTED)
    after: Item = {**before, **CHANGES[change]}
    put(dynamodb, before)

    assert put(dynamodb, after) == cost.put_units(resources.EXECUTIONS, before, after)


@pytest.mark.parametrize("size", [10, 3_000])
def test_leaving_the_list_and_a_delete_have_the_documented_cost(dynamodb: Any, size: int) -> None:
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
def test_a_read_of_less_than_four_kilobytes_has_the_documented_cost(
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
