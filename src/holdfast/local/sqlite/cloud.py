"""The cloud of a `serve` that stores its data in a file, for the pump and the handlers.

A context manager. A thread, the keeper, has three jobs: it makes the messages of processes that
have ended visible, it removes expired rows, and it reads how far the clock is ahead.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from holdfast import limits, resources
from holdfast.errors import ServiceFault
from holdfast.local.meter import Meter
from holdfast.local.sqlite.clock import FileClock
from holdfast.local.sqlite.database import Database
from holdfast.local.sqlite.ports import NAMES
from holdfast.local.sqlite.presence import Presence
from holdfast.local.sqlite.queues import EVENTS, SqliteQueues
from holdfast.local.sqlite.retention import remove_expired
from holdfast.runtime.commands.tokens import SigningKeys

KEEPER_SECONDS: Final = 1.0
RETENTION_SECONDS: Final = 60
#: After an error of the file the pump waits this long before it reads a queue again.
FAULT_PAUSE_SECONDS: Final = 1.0
_KEY_BYTES: Final = 32

_logger: Final = logging.getLogger(__name__)


class SqliteCloud:
    def __init__(self, path: Path, clock: Callable[[], int], *, archives: bool = False) -> None:
        """Open the file. `clock` is the machine's clock; the time in the file may be ahead of it.
        `archives`: the stack has an archive.
        """
        self._archives = archives
        self.database = Database(path)
        self.clock = FileClock(self.database, clock)
        self._presence = Presence(path)
        self._tellers: list[Callable[[], Any]] = []
        self.queues = SqliteQueues(self.database, self.clock, self._presence.name, self._tell)
        self.names = NAMES
        self.events_queue_url = EVENTS
        self.meter = Meter(lambda *_: None)
        self._stop = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self._fault = ""

    def __enter__(self) -> Self:
        self._release_of_ended()
        self._keeper.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._keeper.join()
        self._presence.leave()
        self.database.close()

    def signing_keys(self) -> SigningKeys:
        """Return the signing key of this file. It stays the same, so that issued tokens stay
        valid.
        """
        return SigningKeys(
            "local", {"local": self.database.setting("signing_key", os.urandom(_KEY_BYTES))}
        )

    def health(self) -> dict[str, Any]:
        """Return the response to `GET /health`. Raises ServiceFault when the file cannot be
        written.
        """
        now = str(self.clock()).encode()
        self.database.write(
            lambda writer: writer.execute(
                "INSERT OR REPLACE INTO settings VALUES ('checked_ms', ?)", (now,)
            )
        )
        return {
            "data": str(self.database.path),
            "queued": {queue.name: self.queues.depth(queue.name) for queue in resources.QUEUES},
        }

    # -- for the pump ------------------------------------------------------------------------------

    def receive(self, queue: str, messages_max: int) -> list[dict[str, Any]]:
        """Return a batch in the form of SQS's response; an empty one while the file has an
        error. The batch is hidden for as long as a worker that has begun hides it, so the worker
        need not do so again.
        """
        seconds = None if queue == EVENTS else limits.VISIBILITY_SECONDS
        try:
            found = self.queues.receive(queue, messages_max, seconds)
        except ServiceFault as fault:
            self._pause_after(fault)
            return []
        self._fault = ""
        return [
            {
                "MessageId": one.message_id,
                "ReceiptHandle": one.receipt,
                "Body": one.body,
                "MD5OfBody": "",
                "Attributes": {
                    "ApproximateReceiveCount": str(one.receives),
                    "SentTimestamp": str(one.sent_ms),
                },
            }
            for one in found
        ]

    def delete(self, queue: str, receipts: list[str]) -> None:
        """Delete messages. If this fails, the messages are delivered again, and their worker finds
        nothing to do.
        """
        del queue
        try:
            self.queues.delete(receipts)
        except ServiceFault as fault:
            self._log(fault)

    def next_message_ms(self, queues: Sequence[str]) -> list[int | None]:
        try:
            return self.queues.next_visible_ms(queues)
        except ServiceFault as fault:
            self._pause_after(fault)
            return [None] * len(queues)

    def least_sort_keys(self, table: str, partition_prefix: str) -> list[str]:
        """Return the least sort key of each partition whose key begins with the prefix."""
        statement = f"SELECT min(sk) FROM {table} WHERE pk >= ? AND pk < ? GROUP BY pk"
        bounds = (partition_prefix, partition_prefix + chr(0x10FFFF))
        rows = self.database.read(lambda reader: reader.execute(statement, bounds).fetchall())
        return [row[0] for row in rows]

    @contextmanager
    def telling_of_messages(self, tell: Callable[[], Any]) -> Iterator[None]:
        self._tellers.append(tell)
        try:
            yield
        finally:
            self._tellers.remove(tell)

    def _tell(self) -> None:
        for tell in tuple(self._tellers):
            tell()

    def _pause_after(self, fault: ServiceFault) -> None:
        self._log(fault)
        time.sleep(FAULT_PAUSE_SECONDS)

    def _log(self, fault: ServiceFault) -> None:
        """Log an error of the file. An error that lasts is logged only once."""
        if self._fault != fault.message:
            self._fault = fault.message
            _logger.error("error[%s]: %s", fault.code, fault.message)

    # -- the background thread ---------------------------------------------------------------------

    def _keep(self) -> None:
        last = 0.0
        while not self._stop.wait(KEEPER_SECONDS):
            try:
                self.clock.read_lead()
                self._release_of_ended()
                if time.monotonic() - last >= RETENTION_SECONDS:
                    last = time.monotonic()
                    now_ms, is_stopping = self.clock(), self._stop.is_set
                    kept = self._archives
                    remove_expired(self.database, now_ms, is_stopping, keeps_blobs=kept)
            except ServiceFault as fault:
                self._log(fault)

    def _release_of_ended(self) -> None:
        ended = [name for name in self.queues.holders() if self._presence.is_gone(name)]
        for name in ended:
            self.queues.release(name)
        if ended:
            self._tell()
