"""The two tables in DynamoDB: converts effects to requests, and responses to items."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias, assert_never

from holdfast import resources
from holdfast.aws.clients import ClientName, Clients
from holdfast.aws.faults import CONDITION_FAILED, THROTTLED, error_code, fault
from holdfast.aws.names import ResourceNames
from holdfast.errors import ServiceFault
from holdfast.runtime.effects import (
    Condition,
    Delete,
    Extend,
    Get,
    GetMany,
    Item,
    ListPage,
    Put,
    PutIfAbsent,
    Query,
    QueryList,
    Replace,
    TableName,
    Together,
    Unlist,
    Update,
    Updated,
    list_keys,
    list_page,
)

Attribute: TypeAlias = dict[str, Any]

LAST_CHARACTER: Final = chr(0x10FFFF)  # a character that sorts after every other one
_WHOLE: Final = re.compile(r"-?[0-9]{1,38}")  # DynamoDB's numbers have at most 38 digits
#: The most queries that run at once. A page of a search needs three queries for each execution that
#: it has found.
_THREADS_MAX: Final = 24
THROTTLE_PAUSES_SECONDS: Final = (0.05, 0.2, 0.8)


class DynamoStore:
    def __init__(self, clients: Clients, names: ResourceNames, *, has_threads: bool) -> None:
        self._clients = clients
        self._names = names
        self._has_threads = has_threads

    def query(self, effect: Query) -> list[Item]:
        bounds = _bounds(effect)
        if bounds is None:
            return []
        condition, values = bounds
        return self._pages(
            effect.limit,
            TableName=self._names.table(effect.table),
            KeyConditionExpression=condition,
            ExpressionAttributeValues={":pk": {"S": effect.pk}, **values},
            ConsistentRead=effect.is_strong,
            ScanIndexForward=not effect.reverse,
        )

    def query_list(self, effect: QueryList) -> ListPage:
        """Run one query of the list. DynamoDB filters after it has read, so the page may be
        short.
        """
        partition_key, sort_key = list_keys(effect.table)
        placeholders = _Placeholders()
        values = placeholders.values
        values[":partition"] = {"S": effect.partition}
        condition = f"{partition_key} = :partition"
        if effect.before is not None:
            condition += f" AND {sort_key} < :before"
            values[":before"] = {"S": effect.before}
        request: dict[str, Any] = {"Limit": effect.limit}
        if effect.where:
            request |= {
                "Limit": effect.reads,
                "FilterExpression": placeholders.all_of(effect.where),
                "ExpressionAttributeNames": placeholders.names(),
            }
        page = self._call(
            "store",
            "query",
            TableName=self._names.table(effect.table),
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            ScanIndexForward=False,
            **_index_of(effect.table),
            **request,
        )
        items = [item_of(item) for item in page["Items"]]
        last = page.get("LastEvaluatedKey")
        return list_page(effect, items, "" if last is None else last[sort_key]["S"])

    def query_together(self, effect: Together) -> list[ListPage]:
        """Run the queries in parallel. In a process that may have only one thread, run them one by
        one.
        """
        if not self._has_threads or len(effect.queries) == 1:
            return list(map(self.query_list, effect.queries))
        with ThreadPoolExecutor(min(len(effect.queries), _THREADS_MAX), "list") as pool:
            return list(pool.map(self.query_list, effect.queries))

    def get(self, effect: Get) -> Item | None:
        answer = self._call(
            "store",
            "get_item",
            TableName=self._names.table(effect.table),
            Key=_key(effect.pk, effect.sk),
            ConsistentRead=True,
        )
        return item_of(answer["Item"]) if "Item" in answer else None

    def get_many(self, effect: GetMany) -> list[Item]:
        """Read the items. Under load DynamoDB returns some keys as unprocessed: read those
        again.
        """
        table = self._names.table(effect.table)
        keys = [_key(pk, sk) for pk, sk in effect.keys]
        found: list[Item] = []
        for pause_seconds in (*THROTTLE_PAUSES_SECONDS, 0):
            if not keys:
                return found
            answer = self._call("store", "batch_get_item", RequestItems={table: {"Keys": keys}})
            found += map(item_of, answer["Responses"].get(table, []))
            keys = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            if keys:
                time.sleep(pause_seconds)
        if keys:
            raise ServiceFault(THROTTLED, f"{len(keys)} items were not read")
        return found

    def put_if_absent(self, effect: PutIfAbsent) -> Item | None:
        """Put the item. A throttled put is certainly not stored, so it is sent again: otherwise SQS
        would have to deliver the message again.
        """
        for pause_seconds in THROTTLE_PAUSES_SECONDS:
            try:
                return self._put_once(effect)
            except ServiceFault as error:
                if error.code != THROTTLED:
                    raise
                time.sleep(pause_seconds)
        return self._put_once(effect)

    def _put_once(self, effect: PutIfAbsent) -> Item | None:
        try:
            self._clients.get("store-once").put_item(
                TableName=self._names.table(effect.table),
                Item=attributes_of(effect.item),
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except Exception as error:
            if error_code(error) == CONDITION_FAILED:
                return item_of(error.response["Item"])  # type: ignore[attr-defined]
            raise fault("put_item", error, is_conditional_put=True) from error
        return None

    def put(self, effect: Put) -> None:
        self._call(
            "store",
            "put_item",
            TableName=self._names.table(effect.table),
            Item=attributes_of(effect.item),
        )

    def replace(self, effect: Replace) -> bool:
        """Replace the item without a retry. If the first put was stored but its answer was lost, a
        retry would be refused and look like a failure.
        """
        try:
            self._clients.get("store-once").put_item(
                TableName=self._names.table(effect.table),
                Item=attributes_of(effect.item),
                # The condition is also false when the item was deleted.
                ConditionExpression="rv = :seen",
                ExpressionAttributeValues={":seen": _attribute(effect.seen)},
            )
        except Exception as error:
            if error_code(error) == CONDITION_FAILED:
                return False
            raise fault("put_item", error) from error
        return True

    def update(self, effect: Update) -> Updated:
        request = _update_request(effect)
        try:
            answer = self._clients.get("store").update_item(
                TableName=self._names.table(effect.table), **request
            )
        except Exception as error:
            if error_code(error) == CONDITION_FAILED:
                found = error.response.get("Item", {})  # type: ignore[attr-defined]
                return Updated(is_done=False, item=item_of(found))
            raise fault("update_item", error) from error
        return Updated(is_done=True, item=item_of(answer["Attributes"]))

    def delete(self, effect: Delete) -> None:
        """Delete the item. If a condition is false, nothing remains to be done."""
        request = {
            "TableName": self._names.table(effect.table),
            "Key": _key(effect.pk, effect.sk),
            **_conditions(effect.where),
        }
        try:
            self._clients.get("store").delete_item(**request)
        except Exception as error:
            if error_code(error) != CONDITION_FAILED:
                raise fault("delete_item", error) from error

    def unlist(self, effect: Unlist) -> None:
        self._update_if(
            TableName=self._names.executions_table,
            Key=_key(effect.pk, effect.sk),
            UpdateExpression=f"REMOVE {resources.LIST_PARTITION}, {resources.LIST_SORT}",
            ConditionExpression=f"attribute_exists({resources.LIST_PARTITION})",
        )

    def extend(self, effect: Extend) -> None:
        self._update_if(
            TableName=self._names.mail_table,
            Key=_key(effect.pk, effect.sk),
            UpdateExpression="SET #ttl = :ttl",
            # An item that does not exist has no `run`, so this condition is false for it. Otherwise
            # the update would create a new item.
            ConditionExpression="run = :run",
            ExpressionAttributeNames={"#ttl": "ttl"},  # `ttl` is a reserved word of DynamoDB
            ExpressionAttributeValues={":ttl": {"N": str(effect.ttl)}, ":run": {"S": effect.run}},
        )

    def _update_if(self, **request: Any) -> None:
        """Run an update. If its condition is false, nothing remains to be done."""
        try:
            self._clients.get("store").update_item(**request)
        except Exception as error:
            if error_code(error) != CONDITION_FAILED:
                raise fault("update_item", error) from error

    def _pages(self, limit: int | None, **request: Any) -> list[Item]:
        """Return the items of all pages. A page may end before 1 MB; the last one has no
        LastEvaluatedKey.
        """
        items: list[Item] = []
        while True:
            if limit is not None:
                request["Limit"] = limit - len(items)
            page = self._call("store", "query", **request)
            items += map(item_of, page["Items"])
            if "LastEvaluatedKey" not in page or (limit is not None and len(items) >= limit):
                return items
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _call(self, client: ClientName, operation: str, **request: Any) -> Any:
        try:
            return getattr(self._clients.get(client), operation)(**request)
        except ServiceFault:
            raise
        except Exception as error:
            raise fault(operation, error) from error


class _Placeholders:
    """The names and values in the expressions of one request. A placeholder stands for each name,
    because a name may contain a ":".
    """

    def __init__(self) -> None:
        self.values: dict[str, Attribute] = {}
        self._names: dict[str, str] = {}

    def names(self) -> dict[str, str]:
        return {placeholder: name for name, placeholder in self._names.items()}

    def name_of(self, attribute: str) -> str:
        return self._names.setdefault(attribute, f"#a{len(self._names)}")

    def value_of(self, value: str | int) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = _attribute(value)
        return placeholder

    def all_of(self, conditions: Iterable[Condition]) -> str:
        return " AND ".join(self._test_of(condition) for condition in conditions)

    def _test_of(self, condition: Condition) -> str:
        attribute = self.name_of(condition.attribute)
        absent = f"attribute_not_exists({attribute})"
        match condition.test:
            case "absent":
                return absent
            case "present":
                return f"attribute_exists({attribute})"
            case "begins with":
                return f"begins_with({attribute}, {self.value_of(condition.value)})"
            case "contains":
                return f"contains({attribute}, {self.value_of(condition.value)})"
            case "=" | "<" | "<=" | ">":
                test = f"{attribute} {condition.test} {self.value_of(condition.value)}"
                return f"({absent} OR {test})" if condition.or_absent else test
            case _:
                assert_never(condition.test)


def _index_of(table: TableName) -> dict[str, str]:
    shape = next(shape for shape in resources.TABLES if shape.name == table)
    return {} if shape.index is None else {"IndexName": shape.index.name}


def _conditions(where: tuple[Condition, ...]) -> dict[str, Any]:
    """Return the parameters of a write with these conditions."""
    if not where:
        return {}
    placeholders = _Placeholders()
    request: dict[str, Any] = {"ConditionExpression": placeholders.all_of(where)}
    request["ExpressionAttributeNames"] = placeholders.names()
    if placeholders.values:
        request["ExpressionAttributeValues"] = placeholders.values
    return request


def _update_request(effect: Update) -> dict[str, Any]:
    """Return the parameters of UpdateItem."""
    placeholders = _Placeholders()
    name_of, value_of = placeholders.name_of, placeholders.value_of
    clauses = {
        "SET": [f"{name_of(name)} = {value_of(value)}" for name, value in effect.put.items()],
        "ADD": [f"{name_of(name)} {value_of(value)}" for name, value in effect.add.items()],
        "REMOVE": [name_of(name) for name in effect.remove],
    }
    condition = placeholders.all_of(effect.where)
    request: dict[str, Any] = {
        "Key": _key(effect.pk, effect.sk),
        "UpdateExpression": " ".join(
            f"{verb} {', '.join(parts)}" for verb, parts in clauses.items() if parts
        ),
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        "ExpressionAttributeNames": placeholders.names(),
    }
    if condition:
        request["ConditionExpression"] = condition
    if placeholders.values:
        request["ExpressionAttributeValues"] = placeholders.values
    return request


def attributes_of(item: Item) -> dict[str, Attribute]:
    return {name: _attribute(value) for name, value in item.items()}


def item_of(attributes: Mapping[str, Attribute]) -> Item:
    return {name: _value(attribute) for name, attribute in attributes.items()}


def _attribute(value: str | int | bytes) -> Attribute:
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bytes):
        return {"B": value}
    return {"N": str(value)}


def _value(attribute: Attribute) -> str | int | bytes:
    """Return the stored value. A type that Holdfast never stores becomes text, so that the reader
    of the item refuses it.
    """
    ((kind, value),) = attribute.items()
    if kind == "N" and _WHOLE.fullmatch(value):
        return int(value)
    return bytes(value) if kind == "B" else str(value)


def _key(pk: str, sk: int | str) -> dict[str, Attribute]:
    return {"pk": {"S": pk}, "sk": _attribute(sk)}


def _bounds(query: Query) -> tuple[str, dict[str, Attribute]] | None:
    """Return the key condition and its values; None when no key can be within the bounds.

    DynamoDB allows one condition on the sort key, and its BETWEEN includes both ends. So an
    exclusive lower bound becomes the next possible key.
    """
    low: Any = None
    high: Any = query.until
    if query.after is not None:
        low = query.after + 1 if isinstance(query.after, int) else query.after + "\0"
    if query.begins_with is not None:
        low = query.begins_with if low is None else max(low, query.begins_with)
        last = query.begins_with + LAST_CHARACTER
        high = last if high is None else min(high, last)
    if low is not None and high is not None:
        if low > high:
            return None
        values = {":low": _attribute(low), ":high": _attribute(high)}
        return "pk = :pk AND sk BETWEEN :low AND :high", values
    if low is not None:
        return "pk = :pk AND sk >= :low", {":low": _attribute(low)}
    if high is not None:
        return "pk = :pk AND sk <= :high", {":high": _attribute(high)}
    return "pk = :pk", {}
