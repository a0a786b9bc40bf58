"""The Lambda functions' bodies: an event in AWS's shape in, handlers run, an answer out.

One `Host` serves a process. Lambda builds it from the environment (`aws.entry`), the laptop from
its embedded cloud; what runs is the same.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast import resources
from holdfast.aws.messaging import DeadLetter
from holdfast.aws.names import Names
from holdfast.aws.ports import AwsPorts
from holdfast.aws.telemetry import Metrics, log_fault
from holdfast.errors import HoldfastError, ServiceFault
from holdfast.limits import (
    ATTEMPTS_IN_FLIGHT_MAX,
    DEAD_LETTER_BATCHES_MAX,
    DUE_SHARDS,
    LIMIT_MARGIN_MS,
    PAYLOAD_BYTES_MAX,
    VISIBILITY_EXTENSION_SECONDS,
    VISIBILITY_SECONDS,
)
from holdfast.runtime import sweeper
from holdfast.runtime.claims import Delivery
from holdfast.runtime.driver import run
from holdfast.runtime.effects import Clock, Deadline, Effect, Limit, QueueName, SetVisibility
from holdfast.runtime.front import Front
from holdfast.runtime.keys import TENANT_DEFAULT
from holdfast.runtime.worker import Setting, deliver

QUEUES: tuple[QueueName, ...] = ("work", "single")


@dataclass
class Host:
    """`has_threads` False: everything in turn, for a laptop on a virtual clock.

    `payload_bytes_max` bounds the data of the API's state machines; None lifts AWS's limit.
    """

    ports: AwsPorts
    setting: Setting
    front: Front
    metrics: Metrics
    has_threads: bool = True
    payload_bytes_max: int | None = PAYLOAD_BYTES_MAX
    log_fault: Callable[..., None] = log_fault
    pool: ThreadPoolExecutor | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.has_threads:
            # Enough for a full batch: a time-out must not run while its attempt waits for a thread.
            self.pool = ThreadPoolExecutor(
                ATTEMPTS_IN_FLIGHT_MAX * resources.WORK.batch_size, "task"
            )

    # -- the worker --------------------------------------------------------------------------------

    def worker(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        """An SQS batch; -> the messages that are to come back."""
        records = event["Records"]
        queue = _queue_of(self.ports.names, records)
        now_ms = self.ports.perform(Clock())
        deadline_ms = now_ms + context.get_remaining_time_in_millis()
        receipts = {r["messageId"]: r["receiptHandle"] for r in records}
        with self._visible(queue, receipts, deadline_ms, now_ms) as holds:
            work = [
                (record, self._performer(queue, record, holds), context.aws_request_id)
                for record in records
            ]
            acknowledged = self._map(self._deliver, work)
        self.metrics.flush(now_ms)
        failed = [
            record["messageId"]
            for record, is_done in zip(records, acknowledged, strict=True)
            if not is_done
        ]
        return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}

    def _map(self, function: Callable[..., Any], work: list[tuple[Any, ...]]) -> list[Any]:
        if not self.has_threads or len(work) == 1:
            return [function(*item) for item in work]
        with ThreadPoolExecutor(len(work), "message") as pool:
            return [future.result() for future in [pool.submit(function, *item) for item in work]]

    def _deliver(
        self, record: Mapping[str, Any], perform: Callable[[Effect], Any], request_id: str
    ) -> bool:
        """One message; whatever goes wrong with it is its own, not its batch's (R9)."""
        message_id = str(record["messageId"])
        try:
            delivery = Delivery(
                body=json.loads(record["body"]),
                message_id=message_id,
                receive_count=int(record["attributes"]["ApproximateReceiveCount"]),
                # An invocation works on many messages: two of them may be of one execution.
                owner=f"{request_id[:8]}{os.urandom(4).hex()}",
            )
            return bool(run(deliver(self.setting, delivery), perform, self.pool))
        except Exception as error:  # noqa: BLE001  # the others of the batch go on
            self.log_fault("a work message was not processed", error, message=message_id)
            return False

    def _performer(
        self, queue: QueueName, record: Mapping[str, Any], holds: Holds
    ) -> Callable[[Effect], Any]:
        message_id = str(record["messageId"])
        ports = self.ports.for_message(queue, str(record["receiptHandle"]))

        def perform(effect: Effect) -> Any:
            match effect:
                case Limit():
                    return holds.until_ms - LIMIT_MARGIN_MS
                case Deadline():
                    return holds.deadline_ms - LIMIT_MARGIN_MS
                case SetVisibility():
                    holds.receipts.pop(message_id, None)
            return ports(effect)

        return perform

    @contextmanager
    def _visible(
        self, queue: QueueName, receipts: dict[str, str], deadline_ms: int, now_ms: int
    ) -> Iterator[Holds]:
        """Hides the batch for two minutes at a time: a crash costs two minutes, not sixteen."""
        until_ms = min(deadline_ms, now_ms + VISIBILITY_SECONDS * 1_000)
        holds = Holds(receipts, until_ms, deadline_ms)
        self._hide_each(queue, holds)
        if not self.has_threads:
            holds.until_ms = deadline_ms
            yield holds
            return
        done = threading.Event()
        keeper = threading.Thread(
            target=self._keep_hidden, args=(queue, holds, deadline_ms, done), daemon=True
        )
        keeper.start()
        try:
            yield holds
        finally:
            done.set()
            keeper.join()

    def _keep_hidden(
        self, queue: QueueName, holds: Holds, deadline_ms: int, done: threading.Event
    ) -> None:
        while not done.wait(VISIBILITY_EXTENSION_SECONDS):
            try:
                now_ms = self.ports.perform(Clock())
                self._hide_each(queue, holds)
                holds.until_ms = min(deadline_ms, now_ms + VISIBILITY_SECONDS * 1_000)
            except ServiceFault as error:
                # The limit stays where it was: past it nothing is written (R9).
                self.log_fault("the visibility of a batch was not extended", error)

    def _hide_each(self, queue: QueueName, holds: Holds) -> None:
        """One receipt that SQS no longer takes must not cost the others their time."""
        try:
            self._hide(queue, holds)
        except ServiceFault:
            for message_id, receipt in list(holds.receipts.items()):
                try:
                    self.ports.extend_visibility(queue, [receipt], VISIBILITY_SECONDS)
                except ServiceFault as error:
                    holds.receipts.pop(message_id, None)
                    self.log_fault("a message was not hidden", error, message=message_id)

    def _hide(self, queue: QueueName, holds: Holds) -> None:
        receipts = list(holds.receipts.values())
        if receipts:
            self.ports.extend_visibility(queue, receipts, VISIBILITY_SECONDS)

    # -- the others --------------------------------------------------------------------------------

    def events(self, event: Mapping[str, Any]) -> None:
        """One event from the bus. A fault is raised: EventBridge tries again, then its DLQ."""
        now_ms = self.ports.perform(Clock())
        arrival = self.front.bus_event(TENANT_DEFAULT, event["id"], event["detail"], os.urandom(8))
        self.perform(arrival)
        self.metrics.flush(now_ms)

    def sweeper(self, context: Any) -> None:
        """The minute's round: every shard, then the dead letters."""
        now_ms = self.ports.perform(Clock())
        owner = context.aws_request_id
        self._map(self._sweep, [(shard, owner) for shard in range(DUE_SHARDS)])
        for queue in QUEUES:
            self._revive(queue)
        self.metrics.flush(now_ms)

    def _sweep(self, shard: int, owner: str) -> None:
        try:
            for refused in self.perform(sweeper.sweep(shard, owner)):
                self.log_fault("a due row was not worked off", refused, shard=str(shard))
        except HoldfastError as error:
            # One damaged row must not keep the other shards from being swept.
            self.log_fault("a shard was not swept", error, shard=str(shard))

    def _revive(self, queue: QueueName) -> None:
        """Empties a dead-letter queue, up to a bound; what cannot be read stays, and alarms."""
        for _ in range(DEAD_LETTER_BATCHES_MAX):
            letters = self.ports.receive_dead_letters(queue)
            if not letters:
                return
            self._revive_batch(queue, letters)

    def _revive_batch(self, queue: QueueName, letters: list[DeadLetter]) -> None:
        for letter in letters:
            try:
                self.perform(sweeper.revive(sweeper.DeadLetter(letter.body, letter.message_id)))
            except HoldfastError as error:
                self.log_fault("a dead letter was not revived", error, message=letter.message_id)
                continue
            self.ports.delete_dead_letter(queue, letter.receipt_handle)

    def perform(self, handler: Any) -> Any:
        """Runs a handler that belongs to no message."""
        return run(handler, self.ports.perform)


@dataclass
class Holds:
    """The receipts of a batch that are still at work, and until when they are hidden."""

    receipts: dict[str, str]
    until_ms: int
    deadline_ms: int


def _queue_of(names: Names, records: list[Mapping[str, Any]]) -> QueueName:
    """The queue's physical name is the end of both its ARN and its URL."""
    name = str(records[0]["eventSourceARN"]).rpartition(":")[2]
    single = names.queue_url("single").rpartition("/")[2]
    return "single" if name == single else "work"
