"""A standard SQS queue in memory: delay, visibility, receive count and dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Literal, TypeAlias

from holdfast import limits, resources
from holdfast.runtime.effects import Message
from holdfast.runtime.storage.items import refused

AnyQueueName: TypeAlias = Literal[
    "work", "single", "starts", "work-dlq", "single-dlq", "starts-dlq"
]

VISIBILITY_SECONDS_MAX: Final = 43_200  # SQS quota


@dataclass(frozen=True, slots=True)
class Received:
    """One delivery of a message. `receipt` belongs to this delivery alone."""

    queue: AnyQueueName
    message_id: str
    receipt: str
    body: dict[str, Any]
    receive_count: int
    sent_at: int


@dataclass(slots=True)
class _Stored:
    """A message in a queue. `wake` numbers its place in the heap: older places are void.

    `key` differs from the id in a copy: SQS now and then delivers one message from two hosts.
    """

    key: str
    message_id: str
    text: str
    sent_at: int
    visible_at: int
    receive_count: int = 0
    wake: int = 0


class MemoryQueue:
    """A standard queue that delivers in the order of visibility, then of sending."""

    def __init__(
        self, queue: resources.Queue, clock: Callable[[], int], dead_letters: MemoryQueue | None
    ) -> None:
        self._queue = queue
        self._clock = clock
        # A received dead letter stays hidden as long as a work message of a running worker.
        self._visibility_seconds = (
            limits.VISIBILITY_SECONDS if dead_letters is None else queue.visibility_seconds
        )
        self._dead_letters = dead_letters
        #: After this many receipts the queue moves a message to the dead letters.
        self.receives_max = queue.receives_max
        self._numbers = count(1)
        self._heap: list[tuple[int, int, str]] = []
        self.messages: dict[str, _Stored] = {}
        self._copied: set[str] = set()  # The ids of messages that have, or had, more than one copy

    def send(self, message: Message) -> int:
        """Return the bytes of the body."""
        if not 0 <= message.delay_seconds <= limits.SQS_DELAY_SECONDS_MAX:
            raise refused(f"a delay of {message.delay_seconds} s")
        text = json.dumps(message.body, separators=(",", ":"), ensure_ascii=False)
        size = len(text.encode())
        if size > limits.SQS_MESSAGE_BYTES_MAX:
            raise refused(f"a message of {size} bytes")
        now = self._clock()
        message_id = f"{self._queue.name}-{next(self._numbers)}"
        stored = _Stored(
            key=message_id,
            message_id=message_id,
            text=text,
            sent_at=now,
            visible_at=now + message.delay_seconds * 1_000,
        )
        self.place(stored)
        return size

    def receive(self, name: AnyQueueName, messages_max: int) -> list[Received]:
        now = self._clock()
        batch: list[Received] = []
        while (
            len(batch) < messages_max and (at := self.next_visible_ms()) is not None and at <= now
        ):
            stored = self.messages[heappop(self._heap)[2]]
            if self._dead_letters is not None and stored.receive_count >= self.receives_max:
                del self.messages[stored.key]
                self._dead_letters.place(stored)
                continue
            stored.receive_count += 1
            stored.visible_at = now + self._visibility_seconds * 1_000
            self.place(stored)
            batch.append(_received(name, stored))
        return batch

    def delete(self, receipt: str, *, accepts_stale: bool) -> bool:
        key, _, receive_count = receipt.partition("/")
        stored = self.messages.get(key)
        if stored is None or not (accepts_stale or receive_count == str(stored.receive_count)):
            return False
        del self.messages[key]
        if accepts_stale and stored.message_id in self._copied:
            self._delete_copies(stored.message_id)
        return True

    def _delete_copies(self, message_id: str) -> None:
        """Delete the copies of a message, too: SQS may delete both when one of two deliveries is
        deleted.
        """
        same = [key for key, one in self.messages.items() if one.message_id == message_id]
        for key in same:
            del self.messages[key]

    def set_visibility(self, receipt: str, seconds: int) -> None:
        if not 0 <= seconds <= VISIBILITY_SECONDS_MAX:
            raise refused(f"a visibility of {seconds} s")
        stored = self.messages.get(receipt.partition("/")[0])
        now = self._clock()
        if stored is None or stored.visible_at <= now:
            raise refused(f"message {receipt} is not in flight")
        stored.visible_at = now + seconds * 1_000
        self.place(stored)

    # Further behaviour of a standard queue.

    def show_again(self, receipt: str, at_ms: int) -> bool:
        """Deliver the message once more, even while a worker has it. Return whether it still
        exists.
        """
        stored = self.messages.get(receipt.partition("/")[0])
        if stored is None:
            return False
        stored.visible_at = at_ms
        self.place(stored)
        return True

    def duplicate(self, receipt: str, at_ms: int) -> None:
        """Add a copy with the same id and receive count 0, at most one for each message. More
        copies could multiply faster than workers delete them.
        """
        stored = self.messages[receipt.partition("/")[0]]
        if stored.message_id in self._copied:
            return
        key = self._key_of_copy(stored.message_id)
        self.place(replace(stored, key=key, visible_at=at_ms, receive_count=0))

    def put_back(self, received: Received) -> None:
        """Redrive a dead letter: the same message, with a receive count of 0."""
        text = json.dumps(received.body, separators=(",", ":"), ensure_ascii=False)
        key = self._key_of_copy(received.message_id)
        self.place(_Stored(key, received.message_id, text, received.sent_at, self._clock()))

    def _key_of_copy(self, message_id: str) -> str:
        self._copied.add(message_id)
        return f"{message_id}~{next(self._numbers)}"

    def next_visible_ms(self) -> int | None:
        while self._heap:
            at, wake, key = self._heap[0]
            stored = self.messages.get(key)
            if stored is not None and stored.wake == wake:
                return at
            heappop(self._heap)
        return None

    def place(self, stored: _Stored) -> None:
        """Put a message at its `visible_at`, again after each change of it."""
        stored.wake = next(self._numbers)
        self.messages[stored.key] = stored
        heappush(self._heap, (stored.visible_at, stored.wake, stored.key))


def _received(queue: AnyQueueName, stored: _Stored) -> Received:
    return Received(
        queue=queue,
        message_id=stored.message_id,
        receipt=f"{stored.key}/{stored.receive_count}",
        body=json.loads(stored.text),
        receive_count=stored.receive_count,
        sent_at=stored.sent_at,
    )
