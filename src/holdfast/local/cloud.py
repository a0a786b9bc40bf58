"""The local cloud on moto (an emulator of AWS): one Holdfast stack in this process, with the
resources of `resources`.

No request in a local cloud leaves the process (see `intercept`). It uses no account, and reads no
profile, credentials or endpoint from the environment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from types import TracebackType
from typing import Any, Final, Self

from botocore import UNSIGNED
from botocore.awsrequest import AWSPreparedRequest
from botocore.config import Config
from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID

from holdfast import limits, resources
from holdfast.aws.bus import Bus
from holdfast.aws.clients import Clients
from holdfast.aws.names import ResourceNames
from holdfast.aws.store import item_of
from holdfast.local import corrections, intercept, meter, wall
from holdfast.local.functions import Functions
from holdfast.local.gateway import REGION
from holdfast.local.wall import AwsResponse
from holdfast.runtime.effects import Item, Publish

STACK: Final = "holdfast"
# The queue of the events for the function that EventBridge calls on AWS. moto can deliver events
# only to a queue, so the pump reads this queue and calls the function.
EVENTS_QUEUE: Final = f"{STACK}-bus-deliveries"
EVENTS_VISIBILITY_SECONDS: Final = 60  # the time between two deliveries of an event


class LocalCloud:
    """A context manager. The stack exists inside the context: empty at the start, deleted at the
    end.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.clients = _clients()
        self.meter = meter.Meter(self.find_item)
        self._functions = Functions(clock)

    def __enter__(self) -> Self:
        corrections.install()
        intercept.begin(self.clock, [self._functions.door])
        self._functions.__enter__()
        try:
            self.names, self.events_queue_url = self._create()
        except BaseException:
            self._functions.__exit__(None, None, None)
            intercept.end()
            raise
        meter.install(self.meter)
        self.meter.tables = {
            self.names.executions_table: resources.EXECUTIONS,
            self.names.mail_table: resources.MAIL,
        }
        self.meter.unbilled_queues = {self.events_queue_url}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        meter.install(None)
        self._functions.__exit__(kind, error, trace)
        intercept.end()

    def put_event(self, name: str, key: str, data: Any, event_id: str | None = None) -> None:
        """Put an event on the event bus, as a user's own service does with PutEvents."""
        detail = {"name": name, "key": key, "data": data}
        if event_id is not None:
            detail["id"] = event_id
        self.clients.get("bus").put_events(
            Entries=[
                {
                    "EventBusName": resources.BUS,
                    "Source": "holdfast.local",
                    "DetailType": resources.EVENT_DETAIL_TYPE,
                    "Detail": json.dumps(detail),
                }
            ]
        )

    # These methods read the stored data without a call of AWS. The pump uses them to find the next
    # time at which something is due, and the meter to find the size of an item.

    def find_item(self, table: str, key: dict[str, Any]) -> Item | None:
        """Return the item under a typed key, as it is stored now."""
        with intercept.LOCK:
            found = _backend("dynamodb").get_item(table, key)
            return None if found is None else item_of(found.to_json()["Attributes"])

    def health(self) -> dict[str, Any]:
        return {"data": "memory"}

    def receive(self, queue: str, messages_max: int) -> list[dict[str, Any]]:
        answer = self.clients.get("queues").receive_message(
            QueueUrl=queue,
            MaxNumberOfMessages=messages_max,
            MessageSystemAttributeNames=["All"],
            WaitTimeSeconds=0,
        )
        return list(answer.get("Messages", []))

    def delete(self, queue: str, receipts: list[str]) -> None:
        self.clients.get("queues").delete_message_batch(
            QueueUrl=queue,
            Entries=[
                {"Id": str(number), "ReceiptHandle": receipt}
                for number, receipt in enumerate(receipts)
            ],
        )

    def telling_of_messages(self, tell: Callable[[], Any]) -> AbstractContextManager[None]:
        return intercept.telling_of_messages(tell)

    def next_message_ms(self, queue_urls: Sequence[str]) -> list[int | None]:
        """Return for each queue the time at which its next message can be received."""
        return list(map(self._next_message_ms, queue_urls))

    def _next_message_ms(self, queue_url: str) -> int | None:
        with intercept.LOCK:
            messages = _backend("sqs").queues[queue_url.rsplit("/", 1)[1]]._messages  # noqa: SLF001
            # moto delivers a message only after the visibility time-out has passed.
            times = [max(int(m.visible_at) + 1, int(m.delayed_until)) for m in messages]
        return min(times, default=None)

    def least_sort_keys(self, table: str, partition_prefix: str) -> list[str]:
        """Return the least sort key of each partition whose key begins with the prefix."""
        with intercept.LOCK:
            items = _backend("dynamodb").tables[table].items
            return [
                min(sort_key.value for sort_key in rows)
                for partition_key, rows in items.items()
                if rows and partition_key.value.startswith(partition_prefix)
            ]

    def _create(self) -> tuple[ResourceNames, str]:
        for table in resources.TABLES:
            self._create_table(table)
        blobs_bucket = f"{STACK}-blobs"
        self.clients.get("blobs").create_bucket(Bucket=blobs_bucket)
        dead = {queue.name: self._create_dead_letters(queue) for queue in resources.QUEUES}
        live = {queue.name: self._create_queue(queue) for queue in resources.QUEUES}
        names = ResourceNames(
            executions_table=_physical(resources.EXECUTIONS.name),
            mail_table=_physical(resources.MAIL.name),
            blobs_bucket=blobs_bucket,
            work_queue_url=live[resources.WORK.name],
            single_queue_url=live[resources.SINGLE.name],
            starts_queue_url=live[resources.STARTS.name],
            work_dlq_url=dead[resources.WORK.name],
            single_dlq_url=dead[resources.SINGLE.name],
            starts_dlq_url=dead[resources.STARTS.name],
        )
        return names, self._create_bus()

    def _create_table(self, table: resources.Table) -> None:
        store = self.clients.get("store")
        name = _physical(table.name)
        store.create_table(TableName=name, **table_request(table))
        store.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": table.ttl_attribute},
        )
        _backend("dynamodb").tables[name].__class__ = intercept.PartitionedTable

    def _create_queue(self, queue: resources.Queue) -> str:
        return self._make_queue(
            _physical(queue.name),
            VisibilityTimeout=str(queue.visibility_seconds),
            MessageRetentionPeriod=str(queue.retention_seconds),
            RedrivePolicy=_redrive(_physical(f"{queue.name}-dlq"), queue.receives_max),
        )

    def _create_dead_letters(self, queue: resources.Queue) -> str:
        return self._make_queue(
            _physical(f"{queue.name}-dlq"),
            VisibilityTimeout=str(limits.VISIBILITY_SECONDS),
            MessageRetentionPeriod=str(queue.retention_seconds),
        )

    def _create_bus(self) -> str:
        _create_bus(self.clients)
        dead_letters = f"{EVENTS_QUEUE}-dlq"
        self._make_queue(dead_letters)
        return self._make_queue(
            EVENTS_QUEUE,
            VisibilityTimeout=str(EVENTS_VISIBILITY_SECONDS),
            RedrivePolicy=_redrive(dead_letters, 1 + resources.EVENT_RETRY_ATTEMPTS_MAX),
        )

    def _make_queue(self, name: str, **attributes: str) -> str:
        created = self.clients.get("queues").create_queue(QueueName=name, Attributes=attributes)
        return str(created["QueueUrl"])


class EmulatedServices:
    """moto's AWS services for tasks, in a stack that keeps its own data elsewhere.

    They are in memory and empty at the start. `take_event` receives events that are put on the
    event bus `holdfast`, as EventBridge's JSON.
    """

    def __init__(self, clock: Callable[[], int], take_event: Callable[[str], Any]) -> None:
        self._clock = clock
        self._take_event = take_event
        self._functions = Functions(clock)
        self._bus = Bus(_clients())

    def begin(self) -> None:
        corrections.install()
        intercept.open_services(self._clock)
        self._functions.__enter__()
        wall.open_door(self._functions.door)
        intercept.divert(EVENTS_QUEUE, self._take_event)
        _clients().get("queues").create_queue(QueueName=EVENTS_QUEUE)
        _create_bus(_clients())

    def answer(self, request: AWSPreparedRequest) -> AwsResponse:
        return intercept.answer_of_moto(request)

    def publish(self, effect: Publish) -> None:
        """Put an event on the account's default event bus."""
        self._bus.publish(effect)

    def close(self) -> None:
        self._functions.__exit__(None, None, None)
        intercept.close_services()


def _create_bus(clients: Clients) -> None:
    bus = clients.get("bus")
    bus.create_event_bus(Name=resources.BUS)
    bus.put_rule(
        Name="events",
        EventBusName=resources.BUS,
        EventPattern=json.dumps({"detail-type": [resources.EVENT_DETAIL_TYPE]}),
    )
    bus.put_targets(
        Rule="events",
        EventBusName=resources.BUS,
        Targets=[{"Id": "events", "Arn": _queue_arn(EVENTS_QUEUE)}],
    )


def table_request(table: resources.Table) -> dict[str, Any]:
    """Return the arguments of CreateTable, except for the name."""
    keys = {table.partition_key: "S", table.sort_key: table.sort_key_type}
    request: dict[str, Any] = {
        "KeySchema": _key_schema(table.partition_key, table.sort_key),
        "BillingMode": "PAY_PER_REQUEST",
    }
    index = table.index
    if index is not None:
        keys |= {index.partition_key: "S", index.sort_key: "S"}
        request["GlobalSecondaryIndexes"] = [
            {
                "IndexName": index.name,
                "KeySchema": _key_schema(index.partition_key, index.sort_key),
                "Projection": {
                    "ProjectionType": "INCLUDE",
                    "NonKeyAttributes": list(index.projected),
                },
            }
        ]
    request["AttributeDefinitions"] = [
        {"AttributeName": key, "AttributeType": kind} for key, kind in keys.items()
    ]
    return request


@cache
def _clients() -> Clients:
    """Return the clients. Every local cloud uses the same ones, because creating them takes 0.1
    s.
    """
    session = wall.quiet_session()
    session.set_credentials("local", "local")
    # Send requests without a signature. moto does not check signatures, and the computation of each
    # takes 0.1 ms.
    for service in ("dynamodb", "sqs"):
        session.register(f"choose-signer.{service}", lambda **_: UNSIGNED)
    session.set_default_client_config(
        Config(
            ignore_configured_endpoint_urls=True,
            inject_host_prefix=False,
            use_dualstack_endpoint=False,
            use_fips_endpoint=False,
            user_agent="holdfast",
        )
    )
    meter.register(session)
    return Clients(session, REGION)


def _backend(service: str) -> Any:
    return get_backend(service)[DEFAULT_ACCOUNT_ID][REGION]


def _physical(name: str) -> str:
    return f"{STACK}-{name}"


def _queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{DEFAULT_ACCOUNT_ID}:{name}"


def _redrive(dead_letters: str, receives_max: int) -> str:
    return json.dumps(
        {"deadLetterTargetArn": _queue_arn(dead_letters), "maxReceiveCount": receives_max}
    )


def _key_schema(partition_key: str, sort_key: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition_key, "KeyType": "HASH"},
        {"AttributeName": sort_key, "KeyType": "RANGE"},
    ]
