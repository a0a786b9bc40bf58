"""The queues: delay, visibility, receive counts and dead letters, as in SQS.

A message is a row that exists until it is deleted. A delivery hides it by increasing `visible_ms`,
and stores which process has it. After a crash the message becomes visible when its visibility
time-out ends, or earlier, when another process of this file finds that the process has ended
(`presence`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast import limits, resources
from holdfast.aws.messaging import DeadLetter, parsed_body
from holdfast.local.sqlite.database import Database
from holdfast.runtime.effects import Message, QueueName, Send
from holdfast.runtime.storage.items import refused

VISIBILITY_SECONDS_MAX: Final = 43_200  # SQS quota
#: A visibility time-out that ends this much earlier than requested is not extended. A worker ends
#: its writes earlier than that before the end of the time-out (`limits.LIMIT_MARGIN_MS`).
VISIBILITY_TOLERANCE_MS: Final = 1_000
#: The queue of events that were put on the event bus `holdfast`.
EVENTS: Final = "events"
#: The time between two deliveries of an event.
EVENTS_VISIBILITY_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Received:
    """One delivery of a message. `receipt` is valid only for this delivery."""

    message_id: str
    receipt: str
    body: str
    receives: int
    sent_ms: int


@dataclass(frozen=True, slots=True)
class _Rules:
    visibility_seconds: int
    receives_max: int | None = None


_RULES: Final[dict[str, _Rules]] = {
    **{
        queue.name: _Rules(queue.visibility_seconds, queue.receives_max)
        for queue in resources.QUEUES
    },
    # A dead letter that was received stays hidden for as long as a work message that a worker
    # processes.
    **{f"{queue.name}-dlq": _Rules(limits.VISIBILITY_SECONDS) for queue in resources.QUEUES},
    EVENTS: _Rules(EVENTS_VISIBILITY_SECONDS, 1 + resources.EVENT_RETRY_ATTEMPTS_MAX),
    f"{EVENTS}-dlq": _Rules(EVENTS_VISIBILITY_SECONDS),
}


class SqliteQueues:
    """The queues in the file. `holder` is the name of this process. `tell` is called when messages
    have arrived.
    """

    def __init__(
        self, database: Database, clock: Callable[[], int], holder: str, tell: Callable[[], None]
    ) -> None:
        self._database = database
        self._clock = clock
        self._holder = holder
        self._tell = tell

    def send(self, effect: Send) -> None:
        if not effect.messages:
            return
        now = self._clock()
        self._add([_row_of(effect.queue, message, now) for message in effect.messages])

    def send_event(self, body: str) -> None:
        now = self._clock()
        self._add([(EVENTS, body, now, now)])

    def _add(self, rows: list[tuple[str, str, int, int]]) -> None:
        statement = "INSERT INTO messages (queue, body, sent_ms, visible_ms) VALUES (?, ?, ?, ?)"
        self._database.write(lambda writer: writer.executemany(statement, rows))
        self._tell()

    def next_visible_ms(self, names: Sequence[str]) -> list[int | None]:
        """Return for each queue the time at which its earliest message can be received. One
        statement asks for all: the pump asks fifty times a second.
        """
        earliest = "(SELECT min(visible_ms) FROM messages WHERE queue = ?)"
        statement = f"SELECT {', '.join([earliest] * len(names))}"
        return list(self._database.read(lambda reader: reader.execute(statement, names).fetchone()))

    def depth(self, queue: str) -> int:
        statement = "SELECT count(*) FROM messages WHERE queue = ?"
        found = self._database.read(lambda reader: reader.execute(statement, (queue,)).fetchone())
        return int(found[0])

    def receive(
        self,
        queue: str,
        messages_max: int = limits.SQS_BATCH_ENTRIES_MAX,
        visibility_seconds: int | None = None,
    ) -> list[Received]:
        """Return messages, and hide them for the time of the queue or for `visibility_seconds`."""
        now, rules = self._clock(), _RULES[queue]
        seconds = rules.visibility_seconds if visibility_seconds is None else visibility_seconds

        def receive(writer: sqlite3.Connection) -> list[Received]:
            if rules.receives_max is not None:
                writer.execute(
                    "UPDATE messages SET queue = ?, holder = NULL "
                    "WHERE queue = ? AND visible_ms <= ? AND receives >= ?",
                    (f"{queue}-dlq", queue, now, rules.receives_max),
                )
            rows = writer.execute(
                "SELECT id, body, receives + 1, sent_ms FROM messages "
                "WHERE queue = ? AND visible_ms <= ? ORDER BY visible_ms, id LIMIT ?",
                (queue, now, messages_max),
            ).fetchall()
            until = now + seconds * 1_000
            writer.executemany(
                "UPDATE messages SET visible_ms = ?, receives = ?, holder = ? WHERE id = ?",
                [(until, receives, self._holder, row_id) for row_id, _, receives, _ in rows],
            )
            return [
                Received(str(row_id), f"{row_id}/{receives}", body, receives, sent_ms)
                for row_id, body, receives, sent_ms in rows
            ]

        return self._database.write(receive)

    def delete(self, receipts: Iterable[str]) -> None:
        """Delete messages. A message that was received again in the meantime stays, because another
        worker has it.
        """
        rows = list(map(_parsed, receipts))
        statement = "DELETE FROM messages WHERE id = ? AND receives = ?"
        self._database.write(lambda writer: writer.executemany(statement, rows))

    def extend_visibility(self, receipts: Iterable[str], seconds: int) -> None:
        if not 0 <= seconds <= VISIBILITY_SECONDS_MAX:
            raise refused(f"a visibility of {seconds} s")
        rows = list(map(_parsed, receipts))
        now = self._clock()
        if seconds and self._are_hidden(rows, now + seconds * 1_000):
            return

        def extend(writer: sqlite3.Connection) -> int:
            done = writer.executemany(
                "UPDATE messages SET visible_ms = ? "
                "WHERE id = ? AND receives = ? AND visible_ms > ?",
                [(now + seconds * 1_000, row_id, receives, now) for row_id, receives in rows],
            )
            return len(rows) - done.rowcount

        gone = self._database.write(extend)
        if seconds == 0:
            self._tell()
        if gone:
            raise refused(f"{gone} of {len(rows)} messages are not in flight")

    def _are_hidden(self, rows: list[tuple[int, int]], until_ms: int) -> bool:
        """Return True when each delivery is hidden until about then: this process has just received
        it, and no commit is needed.
        """
        statement = (
            "SELECT 1 FROM messages WHERE id = ? AND receives = ? AND visible_ms BETWEEN ? AND ?"
        )
        bounds = (until_ms - VISIBILITY_TOLERANCE_MS, until_ms)
        return self._database.read(
            lambda reader: all(
                reader.execute(statement, (*row, *bounds)).fetchone() for row in rows
            )
        )

    def receive_dead_letters(self, queue: QueueName) -> list[DeadLetter]:
        return [
            DeadLetter(one.message_id, one.receipt, parsed_body(one.body))
            for one in self.receive(f"{queue}-dlq")
        ]

    def release(self, holder: str) -> int:
        """Make the messages of a process that has ended visible. Return how many there were."""
        now = self._clock()
        released = self._database.write(
            lambda writer: (
                writer.execute(
                    "UPDATE messages SET visible_ms = min(visible_ms, ?), holder = NULL "
                    "WHERE holder = ?",
                    (now, holder),
                ).rowcount
            )
        )
        return int(released)

    def holders(self) -> list[str]:
        """Return the names of the processes that have received messages."""
        statement = "SELECT DISTINCT holder FROM messages WHERE holder IS NOT NULL"
        return [
            row[0]
            for row in self._database.read(lambda reader: reader.execute(statement).fetchall())
        ]


def _parsed(receipt: str) -> tuple[int, int]:
    row_id, _, receives = receipt.partition("/")
    return int(row_id), int(receives)


def _row_of(queue: QueueName, message: Message, now_ms: int) -> tuple[str, str, int, int]:
    if not 0 <= message.delay_seconds <= limits.SQS_DELAY_SECONDS_MAX:
        raise refused(f"a delay of {message.delay_seconds} s")
    text: Any = json.dumps(message.body, separators=(",", ":"), ensure_ascii=False)
    size = len(text.encode())
    if size > limits.SQS_MESSAGE_BYTES_MAX:
        raise refused(f"a message of {size} bytes")
    return queue, text, now_ms, now_ms + message.delay_seconds * 1_000
