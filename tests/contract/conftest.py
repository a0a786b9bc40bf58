"""One stack in three forms: the models in memory, `aws.ports` on moto, and an SQLite file. A test
must not depend on the form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from holdfast.aws.ports import AwsPorts
from holdfast.local.clock import VirtualClock
from holdfast.local.cloud import LocalCloud
from holdfast.local.sqlite.database import Database
from holdfast.local.sqlite.ports import SqlitePorts
from holdfast.local.sqlite.queues import SqliteQueues
from holdfast.runtime.effects import Effect, QueueName, RunTask, TaskSucceeded
from holdfast_simulator.queues import AnyQueueName
from holdfast_simulator.services import Services

START_MS = 1_760_000_000_000
_ARCHIVE = "archive"


@dataclass(frozen=True)
class Delivery:
    message_id: str
    receipt: str
    body: dict[str, Any]
    receive_count: int
    sent_at: int


class Stack(Protocol):
    clock: VirtualClock

    def perform(self, effect: Effect) -> Any: ...
    def receive(self, queue: QueueName, messages_max: int = 10) -> list[Delivery]: ...
    def dead_letters(self, queue: QueueName) -> list[dict[str, Any]]: ...
    def delete(self, queue: QueueName, delivery: Delivery) -> None: ...
    def for_message(self, queue: QueueName, delivery: Delivery) -> Callable[[Effect], Any]: ...
    def extend(self, queue: QueueName, deliveries: list[Delivery], seconds: int) -> None: ...


class MemoryStack:
    def __init__(self) -> None:
        self.clock = VirtualClock(START_MS)
        self.services = Services(self.clock, tasks=_task)
        self.perform = self.services.perform

    def receive(self, queue: QueueName, messages_max: int = 10) -> list[Delivery]:
        return [
            Delivery(r.message_id, r.receipt, r.body, r.receive_count, r.sent_at)
            for r in self.services.receive(queue, messages_max)
        ]

    def dead_letters(self, queue: QueueName) -> list[dict[str, Any]]:
        names: dict[QueueName, AnyQueueName] = {
            "work": "work-dlq",
            "single": "single-dlq",
            "starts": "starts-dlq",
        }
        letters = self.services.receive(names[queue])
        for letter in letters:
            self.services.delete(letter.receipt)
        return [letter.body for letter in letters]

    def delete(self, queue: QueueName, delivery: Delivery) -> None:
        self.services.delete(delivery.receipt)

    def for_message(self, queue: QueueName, delivery: Delivery) -> Callable[[Effect], Any]:
        return self.services.for_message(queue, delivery.receipt)

    def extend(self, queue: QueueName, deliveries: list[Delivery], seconds: int) -> None:
        self.services.extend_visibility(queue, [d.receipt for d in deliveries], seconds)


class MotoStack:
    def __init__(self, cloud: LocalCloud, clock: VirtualClock) -> None:
        self.clock = clock
        self.cloud = cloud
        cloud.clients.get("blobs").create_bucket(Bucket=_ARCHIVE)
        names = replace(cloud.names, archive_bucket=_ARCHIVE)
        self.ports = AwsPorts(
            cloud.clients, names, tasks=_task, clock=clock, metrics=lambda _: None
        )
        self.perform = self.ports.perform

    def receive(self, queue: QueueName, messages_max: int = 10) -> list[Delivery]:
        answer = self.cloud.clients.get("queues").receive_message(
            QueueUrl=self.cloud.names.queue_url(queue),
            MaxNumberOfMessages=messages_max,
            WaitTimeSeconds=0,
            MessageSystemAttributeNames=["All"],
        )
        return [
            Delivery(
                message["MessageId"],
                message["ReceiptHandle"],
                json.loads(message["Body"]),
                int(message["Attributes"]["ApproximateReceiveCount"]),
                int(message["Attributes"]["SentTimestamp"]),
            )
            for message in answer.get("Messages", [])
        ]

    def dead_letters(self, queue: QueueName) -> list[dict[str, Any]]:
        letters = self.ports.receive_dead_letters(queue)
        for letter in letters:
            self.ports.delete_dead_letter(queue, letter.receipt_handle)
        return [letter.body for letter in letters]

    def delete(self, queue: QueueName, delivery: Delivery) -> None:
        self.cloud.clients.get("queues").delete_message(
            QueueUrl=self.cloud.names.queue_url(queue), ReceiptHandle=delivery.receipt
        )

    def for_message(self, queue: QueueName, delivery: Delivery) -> Callable[[Effect], Any]:
        return self.ports.for_message(queue, delivery.receipt)

    def extend(self, queue: QueueName, deliveries: list[Delivery], seconds: int) -> None:
        self.ports.extend_visibility(queue, [d.receipt for d in deliveries], seconds)


class SqliteStack:
    def __init__(self, database: Database, clock: VirtualClock, folder: Path) -> None:
        self.clock = clock
        self.queues = SqliteQueues(database, clock, "this process", lambda: None)
        self.ports = SqlitePorts(
            database,
            self.queues,
            tasks=_task,
            clock=clock,
            publish=lambda _: None,
            archive=folder / _ARCHIVE,
        )
        self.perform = self.ports.perform

    def receive(self, queue: QueueName, messages_max: int = 10) -> list[Delivery]:
        return [
            Delivery(r.message_id, r.receipt, json.loads(r.body), r.receives, r.sent_ms)
            for r in self.queues.receive(queue, messages_max)
        ]

    def dead_letters(self, queue: QueueName) -> list[dict[str, Any]]:
        letters = self.ports.receive_dead_letters(queue)
        for letter in letters:
            self.ports.delete_dead_letter(queue, letter.receipt_handle)
        return [letter.body for letter in letters]

    def delete(self, queue: QueueName, delivery: Delivery) -> None:
        self.queues.delete([delivery.receipt])

    def for_message(self, queue: QueueName, delivery: Delivery) -> Callable[[Effect], Any]:
        return self.ports.for_message(queue, delivery.receipt)

    def extend(self, queue: QueueName, deliveries: list[Delivery], seconds: int) -> None:
        self.ports.extend_visibility(queue, [d.receipt for d in deliveries], seconds)


@contextmanager
def sqlite_stack(folder: Path) -> Iterator[SqliteStack]:
    database = Database(folder / "holdfast.db")
    yield SqliteStack(database, VirtualClock(START_MS), folder)
    database.close()


@contextmanager
def moto_stack() -> Iterator[MotoStack]:
    clock = VirtualClock(START_MS)
    with LocalCloud(clock) as cloud:
        yield MotoStack(cloud, clock)


@pytest.fixture(params=["memory", "moto", "sqlite"])
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    match request.param:
        case "memory":
            yield MemoryStack()
        case "sqlite":
            with sqlite_stack(tmp_path) as stored:
                yield stored
        case _:
            with moto_stack() as moto:
                yield moto


def _task(effect: RunTask) -> TaskSucceeded:
    return TaskSucceeded(output=effect.arguments)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses that are asked for; none is made."""
    asked: list[float] = []
    monkeypatch.setattr("holdfast.aws.store.time.sleep", asked.append)
    return asked
