"""The functions' host on memory services: AWS's own events go in, its answers come out."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from holdfast.aws.host import Host
from holdfast.aws.http import api_handler
from holdfast.aws.messaging import DeadLetter
from holdfast.aws.names import ResourceNames
from holdfast.aws.ports import AwsPorts
from holdfast.aws.telemetry import Metrics
from holdfast.runtime.effects import Effect, QueueName
from holdfast_simulator.services import Services
from tests.builders import Machine, Shop

DOMAIN = "api.example"
JSON_TYPES = {"application/json", "application/x-amz-json-1.0"}
PREFIX = "https://sqs.eu-west-1.amazonaws.com/111111111111/holdfast-"
QUEUES = tuple(f"{PREFIX}{name}" for name in ("work", "single", "starts"))
NAMES = ResourceNames("executions", "mail", "blobs", *QUEUES)


class MemoryPorts:
    """`AwsPorts` on the memory services."""

    names = NAMES

    def __init__(self, services: Services) -> None:
        self.services = services
        #: What performs the effects of the API; a test may put a hook before it.
        self.performs: Callable[[Effect], Any] = services.perform
        self.hidden: list[tuple[list[str], int]] = []
        # The memory services know of one thread; the host has many.
        self._lock = threading.Lock()

    def perform(self, effect: Effect) -> Any:
        with self._lock:
            return self.performs(effect)

    def for_message(self, queue: QueueName, receipt: str) -> Any:
        bound = self.services.for_message(queue, receipt)

        def perform(effect: Effect) -> Any:
            with self._lock:
                return bound(effect)

        return perform

    def extend_visibility(self, queue: QueueName, receipts: list[str], seconds: int) -> None:
        self.hidden.append((receipts, seconds))
        self.services.extend_visibility(queue, receipts, seconds)

    def receive_dead_letters(self, queue: QueueName) -> list[DeadLetter]:
        dlq: Any = f"{queue}-dlq"
        return [
            DeadLetter(received.message_id, received.receipt, received.body)
            for received in self.services.receive(dlq)
        ]

    def delete_dead_letter(self, queue: QueueName, receipt: str) -> None:
        self.services.delete(receipt)


@dataclass(frozen=True, slots=True)
class Context:
    """Lambda's context object for an invocation."""

    aws_request_id: str = "request-1"
    left_ms: int = 900_000

    def get_remaining_time_in_millis(self) -> int:
        return self.left_ms


@dataclass
class Site:
    """One deployed stack: the shop's world behind the functions."""

    shop: Shop
    has_threads: bool = False
    faults: list[tuple[str, Exception]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ports = MemoryPorts(self.shop.world.services)

        def note(what: str, error: Exception, **ids: str) -> None:
            self.faults.append((what, error))

        self.host = Host(
            cast(AwsPorts, self.ports),
            self.shop.world.setting,
            lambda: self.shop.front,
            Metrics("test"),
            has_threads=self.has_threads,
            log_fault=note,
        )
        self.api = api_handler(self.host)

    def work(self, queue: QueueName | None = None, context: Context | None = None) -> list[str]:
        """One batch to the worker function; returns the ids that come back. The others are deleted.

        Without a queue: the starts, and what is under way when there are none.
        """
        services = self.shop.world.services
        if queue is None:
            visible_ms = services.next_visible_ms(("starts",))
            has_starts = visible_ms is not None and visible_ms <= self.shop.world.now_ms
            queue = "starts" if has_starts else "work"
        received = services.receive(queue)
        records = [
            {
                "messageId": message.message_id,
                "receiptHandle": message.receipt,
                "body": json.dumps(message.body),
                "attributes": {"ApproximateReceiveCount": str(message.receive_count)},
                "eventSourceARN": f"arn:aws:sqs:eu-west-1:111111111111:holdfast-{queue}",
            }
            for message in received
        ]
        answer = self.host.worker({"Records": records}, context or Context())
        failed = [item["itemIdentifier"] for item in answer["batchItemFailures"]]
        for message in received:
            if message.message_id not in failed:
                self.shop.world.services.delete(message.receipt)
        return failed

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        claims: Any = None,
        query: dict[str, str] | None = None,
        **fields: Any,
    ) -> tuple[int, Any]:
        """Return status and parsed body. `body` is text as it is, or what becomes JSON."""
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        http = {"method": method, "path": path, "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1"}
        context: dict[str, Any] = {"http": http, "stage": "$default", "requestId": "r1"}
        context["domainName"] = DOMAIN
        if claims is not None:
            context["authorizer"] = {"jwt": {"claims": claims}}
        event = {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": "",
            "queryStringParameters": query,
            "headers": {"content-type": "application/json"},
            "requestContext": context,
            "body": text,
            "isBase64Encoded": False,
            **fields,
        }
        answer = self.api(event, Context())
        # Clients read the body by its type, whatever the status.
        assert answer["headers"]["Content-Type"] in JSON_TYPES
        assert answer["isBase64Encoded"] is False
        return int(answer["statusCode"]), json.loads(answer["body"])


def site(definition: Machine, **options: Any) -> Site:
    return Site(Shop(definition, **options))
