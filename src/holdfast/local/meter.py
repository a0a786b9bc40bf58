"""Counts what the AWS calls of this process would cost, in one botocore hook.

Handlers count nothing themselves. The hook counts every request of a client of the local cloud, by
operation and size. `cost.receipt` converts the counts to money.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast import cost, resources
from holdfast.aws.store import item_of
from holdfast.runtime.effects import Item

if TYPE_CHECKING:
    from botocore.session import Session

FindItem = Callable[[str, dict[str, Any]], Item | None]

CONDITION_FAILED = "ConditionalCheckFailedException"


class Meter:
    """Counts calls and their sizes. `find_item(table, typed key)` reads an item without a call."""

    def __init__(self, find_item: FindItem) -> None:
        self._find_item = find_item
        self._lock = threading.Lock()
        #: The tables whose use is counted, by the names that they have in the cloud.
        self.tables: dict[str, resources.Table] = {}
        #: The queues that stand for a service other than SQS. They do not exist on AWS, so their
        #: use must not be counted as that of SQS.
        self.unbilled_queues: set[str] = set()
        #: The number of API calls, by "service.Operation".
        self.calls: Counter[str] = Counter()
        #: The number of function invocations, by function name.
        self.invocations: Counter[str] = Counter()
        self.usage = cost.Usage()

    def invoked(self, function_name: str) -> None:
        with self._lock:
            self.invocations[function_name] += 1
            self.usage.lambda_requests += 1

    def before(self, operation: str, request: dict[str, Any]) -> Item | None:
        """Return the item that a write is about to change."""
        table = self.tables.get(request.get("TableName", ""))
        if table is None or operation not in ("PutItem", "UpdateItem", "DeleteItem"):
            return None
        return self._find_item(request["TableName"], _key(table, request))

    def after(
        self,
        service: str,
        operation: str,
        request: dict[str, Any],
        answer: dict[str, Any],
        before: Item | None,
    ) -> None:
        if request.get("QueueUrl") in self.unbilled_queues:
            return
        with self._lock:
            self.calls[f"{service}.{operation}"] += 1
            match service:
                case "dynamodb":
                    self._add_dynamodb(operation, request, answer, before)
                case "sqs":
                    self._add_sqs(operation, request, answer)
                case "s3":
                    self.usage.s3_puts += operation == "PutObject"
                    self.usage.s3_gets += operation == "GetObject"
                case "events":
                    self._add_bus(operation, request)

    def _add_dynamodb(
        self,
        operation: str,
        request: dict[str, Any],
        answer: dict[str, Any],
        before: Item | None,
    ) -> None:
        if operation == "BatchGetItem":
            self._add_batch(request, answer)
            return
        table = self.tables.get(request.get("TableName", ""))
        if table is None:
            return
        match operation:
            case "GetItem":
                size = cost.item_bytes(item_of(answer.get("Item", {})))
                self.usage.read_units += cost.read_units(size)
            case "Query":
                size = sum(cost.item_bytes(item_of(item)) for item in answer.get("Items", []))
                is_strong = bool(request.get("ConsistentRead"))
                self.usage.read_units += cost.read_units(size, is_strong=is_strong)
            case "PutItem" | "UpdateItem" | "DeleteItem":
                self._add_write(table, operation, request, answer, before)

    def _add_batch(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Count a BatchGetItem. Each key is billed separately, and a missing item like the smallest
        item.
        """
        for name in self.tables.keys() & request["RequestItems"].keys():
            found = answer.get("Responses", {}).get(name, [])
            missing = len(request["RequestItems"][name]["Keys"]) - len(found)
            sizes = [*(cost.item_bytes(item_of(item)) for item in found), *[0] * missing]
            self.usage.read_units += sum(cost.read_units(size, is_strong=False) for size in sizes)

    def _add_write(
        self,
        table: resources.Table,
        operation: str,
        request: dict[str, Any],
        answer: dict[str, Any],
        before: Item | None,
    ) -> None:
        code = answer.get("Error", {}).get("Code")
        if code == CONDITION_FAILED:
            wanted = item_of(request["Item"]) if operation == "PutItem" else None
            self.usage.write_units += cost.refused_units(before, wanted)
        elif code is None:
            after = (
                item_of(request["Item"])
                if operation == "PutItem"
                else self._find_item(request["TableName"], _key(table, request))
            )
            self.usage.write_units += cost.put_units(table, before, after)
            if operation == "PutItem" and table is resources.EXECUTIONS:
                self.usage.commits += 1

    def _add_sqs(self, operation: str, request: dict[str, Any], answer: dict[str, Any]) -> None:
        match operation:
            case "SendMessage":
                size = len(request["MessageBody"].encode())
                self.usage.sqs_send_requests += cost.billed_chunks(size)
            case "SendMessageBatch":
                size = sum(len(entry["MessageBody"].encode()) for entry in request["Entries"])
                self.usage.sqs_send_requests += cost.billed_chunks(size)
            case "ReceiveMessage":
                self.usage.sqs_deliveries += len(answer.get("Messages", []))

    def _add_bus(self, operation: str, request: dict[str, Any]) -> None:
        if operation == "PutEvents":
            sizes = [len(entry["Detail"].encode()) for entry in request["Entries"]]
            self.usage.bus_events += sum(map(cost.billed_chunks, sizes))


_meters: list[Meter] = []


def install(meter: Meter | None) -> None:
    """Let `meter` count the calls; None: they are not counted."""
    _meters[:] = [] if meter is None else [meter]


def register(session: Session) -> None:
    """Add the hook to every client that `session` will create."""
    session.register("before-parameter-build", _before)
    session.register("after-call", _after)


def _before(params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
    for meter in _meters:
        context["holdfast"] = (params, meter.before(model.name, params))


def _after(parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
    for meter in _meters:
        if "holdfast" in context:
            request, before = context["holdfast"]
            service = model.service_model.service_name
            meter.after(service, model.name, request, parsed, before)


def _key(table: resources.Table, request: dict[str, Any]) -> dict[str, Any]:
    names = (table.partition_key, table.sort_key)
    source = request.get("Key") or request["Item"]
    return {name: source[name] for name in names}
