"""The exact request of each effect. moto answers a request without ConsistentRead, or with another
bound, as it answers the right one; AWS does not.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from botocore.response import StreamingBody

from holdfast.aws.clients import Clients, _Kind
from holdfast.aws.messaging import DeadLetter
from holdfast.aws.ports import AwsPorts
from holdfast.errors import ServiceFault
from holdfast.limits import BATCH_GET_MAX
from holdfast.runtime.effects import (
    Archived,
    Begin,
    Clock,
    Condition,
    Deadline,
    Delete,
    Effect,
    Extend,
    Finished,
    Get,
    GetArchive,
    GetBlob,
    GetMany,
    Measure,
    Message,
    Pause,
    Publish,
    Put,
    PutArchive,
    PutBlob,
    PutIfAbsent,
    Query,
    QueryList,
    Replace,
    RunTask,
    Send,
    SetVisibility,
    TaskSucceeded,
    Together,
    Unlist,
    Update,
    WriteDeadline,
)
from tests.contract.scripted import NAMES, QUEUES, Scripted, answered, ports

ITEM: dict[str, Any] = {"pk": "a", "sk": 0, "v": b"\x00"}
STORED = {"pk": {"S": "a"}, "sk": {"N": "0"}, "v": {"B": b"\x00"}}
KEY = {"pk": {"S": "a"}, "sk": {"N": "0"}}


def asked(effect: Effect, answer: Any) -> tuple[str, str, dict[str, Any]]:
    """Return the client, the operation and the request of an effect that needs one request."""
    clients = Scripted(answer)
    ports(clients).perform(effect)
    (only,) = clients.asked
    return only


def test_a_query_is_strongly_consistent_and_bounded_by_its_key() -> None:
    found = asked(Query("executions", "a", after=4, until=9), {"Items": []})
    assert found == (
        "store",
        "query",
        {
            "TableName": "executions",
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
            "ExpressionAttributeValues": {
                ":pk": {"S": "a"},
                ":low": {"N": "5"},
                ":high": {"N": "9"},
            },
            "ConsistentRead": True,
            "ScanIndexForward": True,
        },
    )


def test_a_query_at_half_the_price_is_eventually_consistent() -> None:
    _, _, request = asked(Query("executions", "a", is_strong=False), {"Items": []})
    assert request["ConsistentRead"] is False


@pytest.mark.parametrize(
    ("bounds", "condition", "values"),
    [
        ({}, "pk = :pk", {}),
        ({"after": "m"}, "pk = :pk AND sk >= :low", {":low": {"S": "m\0"}}),
        ({"until": "m"}, "pk = :pk AND sk <= :high", {":high": {"S": "m"}}),
        (
            {"begins_with": "e#"},
            "pk = :pk AND sk BETWEEN :low AND :high",
            {":low": {"S": "e#"}, ":high": {"S": "e#\U0010ffff"}},
        ),
        (
            {"begins_with": "e#", "after": "e#7", "until": "e#9"},
            "pk = :pk AND sk BETWEEN :low AND :high",
            {":low": {"S": "e#7\0"}, ":high": {"S": "e#9"}},
        ),
        (
            {"begins_with": "e#", "after": "a", "until": "x"},
            "pk = :pk AND sk BETWEEN :low AND :high",
            {":low": {"S": "e#"}, ":high": {"S": "e#\U0010ffff"}},
        ),
        (
            {"after": 4, "until": 5},
            "pk = :pk AND sk BETWEEN :low AND :high",
            {":low": {"N": "5"}, ":high": {"N": "5"}},
        ),
    ],
)
def test_the_bounds_of_a_query(bounds: dict[str, Any], condition: str, values: Any) -> None:
    _, _, request = asked(Query("mail", "a", **bounds), {"Items": []})
    assert request["KeyConditionExpression"] == condition
    assert request["ExpressionAttributeValues"] == {":pk": {"S": "a"}, **values}


def test_a_query_that_no_key_fits_is_not_sent() -> None:
    clients = Scripted()
    assert ports(clients).perform(Query("executions", "a", after=5, until=5)) == []
    assert clients.asked == []


def test_a_query_reads_page_after_page_to_its_limit() -> None:
    """DynamoDB ends a page at 1 MB; the next request begins where it ended."""
    clients = Scripted(
        {"Items": [STORED] * 2, "LastEvaluatedKey": KEY},
        {"Items": [], "LastEvaluatedKey": {**KEY, "sk": {"N": "7"}}},
        {"Items": [STORED], "LastEvaluatedKey": KEY},
    )
    found = ports(clients).perform(Query("executions", "a", limit=3, reverse=True))
    assert found == [ITEM] * 3
    requests = [request for _, _, request in clients.asked]
    assert [one["Limit"] for one in requests] == [3, 1, 1]
    begins = [one.get("ExclusiveStartKey") for one in requests]
    assert begins == [None, KEY, {**KEY, "sk": {"N": "7"}}]
    assert all(one["ScanIndexForward"] is False for one in requests)


def test_a_query_without_a_limit_reads_to_the_last_page() -> None:
    clients = Scripted({"Items": [STORED], "LastEvaluatedKey": KEY}, {"Items": [STORED]})
    assert ports(clients).perform(Query("executions", "a")) == [ITEM] * 2
    assert all("Limit" not in request for _, _, request in clients.asked)


def test_a_query_of_the_list_reads_the_index_the_newest_first() -> None:
    found = asked(QueryList("running", 20, before="5"), {"Items": []})
    assert found == (
        "store",
        "query",
        {
            "TableName": "executions",
            "IndexName": "list",
            "KeyConditionExpression": "lp = :partition AND ls < :before",
            "ExpressionAttributeValues": {":partition": {"S": "running"}, ":before": {"S": "5"}},
            "ScanIndexForward": False,
            "Limit": 20,
        },
    )


def test_a_filter_of_the_list_reads_a_bounded_number_of_entries() -> None:
    where = (Condition("wf", "=", "order"), Condition("pa", "absent"))
    _, _, request = asked(QueryList("running", 20, where=where, reads=300), {"Items": []})
    assert request["Limit"] == 300
    assert request["FilterExpression"] == "#a0 = :v1 AND attribute_not_exists(#a1)"
    assert request["ExpressionAttributeNames"] == {"#a0": "wf", "#a1": "pa"}
    assert request["ExpressionAttributeValues"][":v1"] == {"S": "order"}


def test_a_get_is_strongly_consistent() -> None:
    request = {"TableName": "mail", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}
    found = asked(Get("mail", "a", "b"), {"Item": STORED})
    assert found == ("store", "get_item", {**request, "ConsistentRead": True})


def test_keys_that_dynamodb_did_not_read_are_asked_again_after_pauses(pauses: list[float]) -> None:
    keys = [{"pk": {"S": "a"}, "sk": {"S": str(n)}} for n in range(3)]
    clients = Scripted(
        {"Responses": {"mail": [STORED]}, "UnprocessedKeys": {"mail": {"Keys": keys[1:]}}},
        {"Responses": {}, "UnprocessedKeys": {"mail": {"Keys": keys[2:]}}},
        {"Responses": {"mail": [STORED]}, "UnprocessedKeys": {}},
    )
    effect = GetMany("mail", tuple(("a", str(n)) for n in range(3)))
    assert ports(clients).perform(effect) == [ITEM] * 2
    sent = [request["RequestItems"]["mail"]["Keys"] for _, _, request in clients.asked]
    assert sent == [keys, keys[1:], keys[2:]]
    assert pauses == [0.05, 0.2]


def test_the_last_call_may_read_the_rest(pauses: list[float]) -> None:
    unread = {"UnprocessedKeys": {"mail": {"Keys": [{"pk": {"S": "a"}, "sk": {"S": "0"}}]}}}
    clients = Scripted(*[{"Responses": {}, **unread}] * 3, {"Responses": {"mail": [STORED]}})
    assert ports(clients).perform(GetMany("mail", (("a", "0"),))) == [ITEM]
    assert pauses == [0.05, 0.2, 0.8]


def test_keys_that_are_never_read_are_a_throttled_call(pauses: list[float]) -> None:
    keys = [{"pk": {"S": "a"}, "sk": {"S": "0"}}]
    unread = {"Responses": {}, "UnprocessedKeys": {"mail": {"Keys": keys}}}
    clients = Scripted(*[unread] * 4)
    with pytest.raises(ServiceFault, match="1 items were not read") as fault:
        ports(clients).perform(GetMany("mail", (("a", "0"),)))
    assert (fault.value.code, fault.value.retry) == ("HF321", "later")
    assert pauses[:3] == [0.05, 0.2, 0.8]
    assert len(clients.asked) == 4
    assert BATCH_GET_MAX == 100  # the callers' bound


def test_a_first_put_needs_an_empty_place_and_brings_the_item_that_is_there() -> None:
    assert asked(PutIfAbsent("executions", ITEM), {}) == (
        "store-once",
        "put_item",
        {
            "TableName": "executions",
            "Item": STORED,
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    )


def test_a_throttled_put_is_tried_four_times_with_three_pauses(pauses: list[float]) -> None:
    throttled = answered(400, "ThrottlingException")
    clients = Scripted(*[throttled] * 4)
    with pytest.raises(ServiceFault) as fault:
        ports(clients).perform(PutIfAbsent("executions", ITEM))
    assert fault.value.code == "HF321"
    assert pauses == [0.05, 0.2, 0.8]


def test_a_put_that_was_refused_otherwise_is_sent_once(pauses: list[float]) -> None:
    clients = Scripted(answered(400, "AccessDeniedException"))
    with pytest.raises(ServiceFault):
        ports(clients).perform(PutIfAbsent("executions", ITEM))
    assert (len(clients.asked), pauses) == (1, [])


def test_an_ordinary_put_and_a_delete_have_no_condition() -> None:
    put = ("store", "put_item", {"TableName": "mail", "Item": STORED})
    assert asked(Put("mail", ITEM), {}) == put
    delete = {"TableName": "executions", "Key": KEY}
    assert asked(Delete("executions", "a", 0), {}) == ("store", "delete_item", delete)


def test_a_deletion_whose_condition_is_false_is_no_fault() -> None:
    effect = Delete("executions", "a", 0, (Condition("n", ">", 3),))
    assert asked(effect, {}) == (
        "store",
        "delete_item",
        {
            "TableName": "executions",
            "Key": KEY,
            "ConditionExpression": "#a0 > :v0",
            "ExpressionAttributeNames": {"#a0": "n"},
            "ExpressionAttributeValues": {":v0": {"N": "3"}},
        },
    )
    refused = answered(400, "ConditionalCheckFailedException")
    assert ports(Scripted(refused)).perform(effect) is None


def test_a_replacement_is_sent_once_and_needs_the_version_that_was_read() -> None:
    assert asked(Replace("mail", {**ITEM, "rv": 5}, seen=4), {}) == (
        "store-once",
        "put_item",
        {
            "TableName": "mail",
            "Item": {**STORED, "rv": {"N": "5"}},
            "ConditionExpression": "rv = :seen",
            "ExpressionAttributeValues": {":seen": {"N": "4"}},
        },
    )
    refused = answered(400, "ConditionalCheckFailedException")
    assert ports(Scripted(refused)).perform(Replace("mail", ITEM, seen=4)) is False
    assert ports(Scripted({})).perform(Replace("mail", ITEM, seen=4)) is True


def test_an_update_writes_its_clauses_and_reads_the_row_in_both_cases() -> None:
    effect = Update(
        "mail",
        "a",
        "g",
        put={"x": 1},
        add={"n": 2},
        remove=("old",),
        where=(Condition("v", "<=", 3, or_absent=True), Condition("k", "begins with", "q")),
    )
    assert asked(effect, {"Attributes": {"n": {"N": "2"}}}) == (
        "store",
        "update_item",
        {
            "TableName": "mail",
            "Key": {"pk": {"S": "a"}, "sk": {"S": "g"}},
            "UpdateExpression": "SET #a0 = :v0 ADD #a1 :v1 REMOVE #a2",
            "ConditionExpression": "(attribute_not_exists(#a3) OR #a3 <= :v2)"
            " AND begins_with(#a4, :v3)",
            "ExpressionAttributeNames": {
                "#a0": "x",
                "#a1": "n",
                "#a2": "old",
                "#a3": "v",
                "#a4": "k",
            },
            "ExpressionAttributeValues": {
                ":v0": {"N": "1"},
                ":v1": {"N": "2"},
                ":v2": {"N": "3"},
                ":v3": {"S": "q"},
            },
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    )
    refused = answered(400, "ConditionalCheckFailedException", Item={"n": {"N": "9"}})
    found = ports(Scripted(refused)).perform(effect)
    assert (found.is_done, found.item) == (False, {"n": 9})
    found = ports(Scripted({"Attributes": {"n": {"N": "2"}}})).perform(effect)
    assert (found.is_done, found.item) == (True, {"n": 2})


def test_an_update_that_only_removes_sends_no_values_and_no_condition() -> None:
    """DynamoDB refuses an empty map of values, and an empty condition."""
    _, _, request = asked(Update("mail", "a", "g", remove=("old",)), {"Attributes": {}})
    assert request["UpdateExpression"] == "REMOVE #a0"
    assert not {"ExpressionAttributeValues", "ConditionExpression"} & request.keys()
    _, _, request = asked(Delete("mail", "a", "g", (Condition("n", "absent"),)), {})
    assert request["ConditionExpression"] == "attribute_not_exists(#a0)"
    assert "ExpressionAttributeValues" not in request


def test_a_record_leaves_the_list_only_when_it_is_in_it() -> None:
    _, operation, request = asked(Unlist("a", 0), {})
    assert operation == "update_item"
    assert request == {
        "TableName": "executions",
        "Key": KEY,
        "UpdateExpression": "REMOVE lp, ls",
        "ConditionExpression": "attribute_exists(lp)",
    }


def test_a_name_is_extended_only_for_its_own_run() -> None:
    _, operation, request = asked(Extend("a", "n#x", run="r1", ttl=77), {})
    assert operation == "update_item"
    assert request == {
        "TableName": "mail",
        "Key": {"pk": {"S": "a"}, "sk": {"S": "n#x"}},
        "UpdateExpression": "SET #ttl = :ttl",
        "ConditionExpression": "run = :run",
        "ExpressionAttributeNames": {"#ttl": "ttl"},
        "ExpressionAttributeValues": {":ttl": {"N": "77"}, ":run": {"S": "r1"}},
    }


def test_a_false_condition_of_an_update_is_no_fault_and_any_other_refusal_is() -> None:
    for effect in (Unlist("a", 0), Extend("a", "n#x", run="r1", ttl=77)):
        ports(Scripted(answered(400, "ConditionalCheckFailedException"))).perform(effect)
        with pytest.raises(ServiceFault) as fault:
            ports(Scripted(answered(400, "AccessDeniedException"))).perform(effect)
        assert fault.value.code == "HF323"


@pytest.mark.parametrize(
    ("effect", "operation"),
    [
        (Query("mail", "a"), "query"),
        (QueryList("a", 5), "query"),
        (Get("mail", "a", "b"), "get_item"),
        (GetMany("mail", (("a", "b"),)), "batch_get_item"),
        (PutIfAbsent("mail", ITEM), "put_item"),
        (Put("mail", ITEM), "put_item"),
        (Replace("mail", ITEM, seen=1), "put_item"),
        (Update("mail", "a", "b", put={"x": 1}), "update_item"),
        (Delete("mail", "a", "b"), "delete_item"),
        (Unlist("a", 0), "update_item"),
        (Extend("a", "b", run="r", ttl=1), "update_item"),
        (PutBlob("k", b""), "put_object"),
        (GetBlob("k"), "get_object"),
        (PutArchive("k", b""), "put_object"),
        (GetArchive("k"), "list_objects_v2"),
        (Send((Message({"t": "d"}),)), "send_message_batch"),
        (Publish("x", "y", {}, (), 0), "put_events"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fault_names_the_operation_that_failed(effect: Effect, operation: str) -> None:
    """By it an operator finds the missing right."""
    names = replace(NAMES, archive_bucket="archive")
    with pytest.raises(ServiceFault) as fault:
        ports(Scripted(answered(400, "AccessDeniedException")), names).perform(effect)
    assert fault.value.message.startswith(f"{operation} was refused: AccessDeniedException: said")


# -- blobs -----------------------------------------------------------------------------------------


def test_a_blob_goes_to_its_bucket_under_its_key() -> None:
    found = asked(PutBlob("k", b"\x01"), {})
    assert found == ("blobs", "put_object", {"Bucket": "blobs", "Key": "k", "Body": b"\x01"})


@pytest.mark.parametrize("sent", [0, 3])
def test_a_blob_of_which_only_a_part_arrives_is_asked_again_and_never_used(sent: int) -> None:
    cut_off = {"Body": StreamingBody(io.BytesIO(b"whole"[:sent]), 5)}
    with pytest.raises(ServiceFault) as fault:
        ports(Scripted(cut_off)).perform(GetBlob("k"))
    assert (fault.value.code, fault.value.retry) == ("HF322", "now")
    whole = {"Body": StreamingBody(io.BytesIO(b"whole"), 5)}
    assert ports(Scripted(whole)).perform(GetBlob("k")) == b"whole"


def test_an_archived_execution_goes_to_the_archive_and_is_found_by_the_last_of_its_keys() -> None:
    names = replace(NAMES, archive_bucket="archive")
    body = {"Body": StreamingBody(io.BytesIO(b"whole"), 5)}
    clients = Scripted({}, {"Contents": [{"Key": "k#1"}, {"Key": "k#3"}, {"Key": "k#2"}]}, body)
    archive = ports(clients, names)
    archive.perform(PutArchive("k#1", b"x"))
    assert archive.perform(GetArchive("k#", until="k#2")) == Archived("s3://archive/k#2", b"whole")
    assert clients.asked == [
        ("blobs", "put_object", {"Bucket": "archive", "Key": "k#1", "Body": b"x"}),
        ("blobs", "list_objects_v2", {"Bucket": "archive", "Prefix": "k#"}),
        ("blobs", "get_object", {"Bucket": "archive", "Key": "k#2"}),
    ]
    assert ports(Scripted({}), names).perform(GetArchive("k#")) is None
    assert ports(Scripted()).perform(GetArchive("k#")) is None  # a stack without an archive
    for effect in (PutArchive("k", b""), GetArchive("k")):
        with pytest.raises(ServiceFault) as fault:
            ports(Scripted(answered(503, "SlowDown")), names).perform(effect)
        assert fault.value.code == "HF321"


def test_queries_that_are_sent_together_keep_their_order_in_threads_and_without() -> None:
    queries = tuple(QueryList(str(number), 5) for number in range(3))
    for has_threads in (False, True):

        class Echo(Scripted):
            def get(self, _name: Any) -> Any:
                return self

            def query(self, **request: Any) -> Any:
                [partition] = request["ExpressionAttributeValues"].values()
                return {"Items": [{"pk": partition}]}

        found = ports(Echo(), has_threads=has_threads).perform(Together(queries))
        assert [page.items for page in found] == [[{"pk": str(number)}] for number in range(3)]


def test_what_is_not_a_request_goes_to_what_the_host_has_given(pauses: list[float]) -> None:
    measured: list[Measure] = []
    published: list[Publish] = []
    made = AwsPorts(
        Scripted(),
        NAMES,
        tasks=lambda task: TaskSucceeded(task.name),
        clock=lambda: 77,
        metrics=measured.append,
        publish=published.append,
    )
    task = RunTask("pack", "task", {}, "default", "r", None, "order", 0, 1, 0)
    event = Publish("source", "type", {"a": 1}, (), 5)
    assert made.perform(task) == TaskSucceeded("pack")
    assert made.perform(Clock()) == 77
    made.perform(Pause(250))
    made.perform(Measure("Count", 1))
    made.perform(event)
    assert (pauses, measured, published) == ([0.25], [Measure("Count", 1)], [event])


def test_each_effect_but_those_of_the_driver_and_of_one_message_has_a_performer() -> None:
    known = set(ports(Scripted())._performers)
    others = {Begin, Finished, Deadline, WriteDeadline, SetVisibility}
    assert known | others == set(get_args(Effect))


# -- queues ----------------------------------------------------------------------------------------


def entries(*messages: Message, queue: Any = "work") -> list[dict[str, Any]]:
    clients = Scripted(*[{}] * len(messages))
    ports(clients).perform(Send(messages, queue=queue))
    return [request for _, _, request in clients.asked]


def test_a_message_has_the_group_of_its_tenant_and_its_delay() -> None:
    [request] = entries(Message({"t": "acme", "n": "ä"}, delay_seconds=7), Message({"t": "b"}))
    assert request == {
        "QueueUrl": QUEUES[0],
        "Entries": [
            {
                "Id": "0",
                "MessageBody": '{"t":"acme","n":"ä"}',
                "MessageGroupId": "acme",
                "DelaySeconds": 7,
            },
            {"Id": "1", "MessageBody": '{"t":"b"}', "MessageGroupId": "b"},
        ],
    }


@pytest.mark.parametrize("letter", ["a", "ä", "漢", "\U0001f600"])
def test_a_batch_is_measured_in_bytes(letter: str) -> None:
    """Two messages that have together one byte more than SQS takes go in two batches."""
    width = len(letter.encode())
    empty = len(json.dumps({"t": "d", "x": ""}, separators=(",", ":")))
    half = (1024 * 1024 - 2 * empty) // 2 // width
    fits = [Message({"t": "d", "x": letter * half})] * 2
    over = [*fits, Message({"t": "d", "x": letter * width})]
    assert [len(one["Entries"]) for one in entries(*fits)] == [2]
    assert [len(one["Entries"]) for one in entries(*over)] == [2, 1]
    for request in entries(*over):
        sent = sum(len(one["MessageBody"].encode()) for one in request["Entries"])
        assert sent <= 1024 * 1024


def test_messages_go_in_tens_whose_ids_begin_anew() -> None:
    sent = entries(*[Message({"t": "d", "n": n}) for n in range(11)], queue="single")
    assert [[one["Id"] for one in request["Entries"]] for request in sent] == [
        [str(n) for n in range(10)],
        ["0"],
    ]
    assert {request["QueueUrl"] for request in sent} == {QUEUES[1]}


def test_each_receipt_is_hidden_for_the_seconds_asked() -> None:
    clients = Scripted({})
    ports(clients).extend_visibility("starts", ["r1", "r2"], 120)
    assert clients.asked == [
        (
            "queues",
            "change_message_visibility_batch",
            {
                "QueueUrl": QUEUES[2],
                "Entries": [
                    {"Id": "0", "ReceiptHandle": "r1", "VisibilityTimeout": 120},
                    {"Id": "1", "ReceiptHandle": "r2", "VisibilityTimeout": 120},
                ],
            },
        )
    ]


def test_one_receipt_in_any_batch_that_sqs_refuses_is_a_fault() -> None:
    refused = {"Failed": [{"Id": "0", "Code": "ReceiptHandleIsInvalid", "SenderFault": True}]}
    for script in ([refused, {}], [{}, refused]):
        with pytest.raises(ServiceFault, match="1 messages was not changed: Receipt") as fault:
            ports(Scripted(*script)).extend_visibility("work", map(str, range(11)), 120)
        assert (fault.value.code, fault.value.retry) == ("HF323", "never")


def test_dead_letters_are_received_in_tens_without_waiting_and_deleted_by_their_receipts() -> None:
    received = {"MessageId": "m", "ReceiptHandle": "r", "Body": '{"k": 1}'}
    odd = {"MessageId": "n", "ReceiptHandle": "s", "Body": "no JSON"}
    clients = Scripted({"Messages": [received, odd]}, {})
    letters = ports(clients).receive_dead_letters("work")
    ports(clients).delete_dead_letter("work", "r")
    assert letters == [DeadLetter("m", "r", {"k": 1}), DeadLetter("n", "s", None)]
    assert clients.asked == [
        (
            "queues",
            "receive_message",
            {"QueueUrl": "", "MaxNumberOfMessages": 10, "WaitTimeSeconds": 0},
        ),
        ("queues", "delete_message", {"QueueUrl": "", "ReceiptHandle": "r"}),
    ]
    assert ports(Scripted({})).receive_dead_letters("work") == []


# -- clients ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "service", "attempts", "read_seconds", "keeps_alive"),
    [
        ("store", "dynamodb", 3, 5, False),
        ("store-once", "dynamodb", 1, 5, False),
        ("queues", "sqs", 3, 5, False),
        ("blobs", "s3", 3, 20, False),
        ("bus", "events", 3, 5, False),
        ("secrets", "secretsmanager", 3, 5, False),
        ("keys", "kms", 3, 5, False),
        ("functions", "lambda", 1, 910, True),
    ],
)
def test_a_client_has_the_time_outs_and_attempts_of_its_purpose(
    name: Any, service: str, attempts: int, read_seconds: int, keeps_alive: bool
) -> None:
    made: list[tuple[str, str | None, Any]] = []

    class Session:
        def create_client(self, service: str, *, region_name: str | None, config: Any) -> object:
            made.append((service, region_name, config))
            return object()

    clients = Clients(Session(), "eu-west-1")
    assert clients.get(name) is clients.get(name)
    [(found, region, config)] = made
    assert (found, region) == (service, "eu-west-1")
    assert config.retries == {"mode": "standard", "total_max_attempts": attempts}
    assert (config.connect_timeout, config.read_timeout) == (2, read_seconds)
    assert config.max_pool_connections == 50
    assert config.tcp_keepalive is keeps_alive
    assert config.parameter_validation is False
    assert config.request_checksum_calculation == "when_required"
    assert config.response_checksum_validation == "when_required"


def test_an_ordinary_client_retries() -> None:
    assert _Kind("dynamodb") == _Kind("dynamodb", 3, 5, keeps_alive=False)
