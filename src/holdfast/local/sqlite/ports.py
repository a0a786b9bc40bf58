"""Performs the effects of handlers on the file, as `aws.ports` does on AWS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from holdfast import resources
from holdfast.aws.messaging import DeadLetter
from holdfast.aws.names import ResourceNames
from holdfast.errors import HoldfastBug
from holdfast.local.archive_folder import ArchiveFolder
from holdfast.local.sqlite.blobs import SqliteBlobs
from holdfast.local.sqlite.database import Database
from holdfast.local.sqlite.queues import SqliteQueues
from holdfast.local.sqlite.store import SqliteStore
from holdfast.runtime.effects import (
    Clock,
    Delete,
    Effect,
    Extend,
    Get,
    GetArchive,
    GetBlob,
    GetMany,
    Measure,
    Pause,
    Publish,
    Put,
    PutArchive,
    PutBlob,
    PutIfAbsent,
    Query,
    QueryList,
    QueueName,
    Replace,
    RunTask,
    Send,
    SetVisibility,
    TaskResult,
    Together,
    Unlist,
    Update,
)

#: The names of the resources in the file. They are the same as those in events.
NAMES: Final = ResourceNames(
    executions_table=resources.EXECUTIONS.name,
    mail_table=resources.MAIL.name,
    blobs_bucket="blobs",
    work_queue_url=resources.WORK.name,
    single_queue_url=resources.SINGLE.name,
    starts_queue_url=resources.STARTS.name,
    work_dlq_url=f"{resources.WORK.name}-dlq",
    single_dlq_url=f"{resources.SINGLE.name}-dlq",
    starts_dlq_url=f"{resources.STARTS.name}-dlq",
)


class SqlitePorts:
    """Performs effects. `tasks` runs user code, `clock` gives the time in ms, `publish` sends an
    event to the account's default event bus. `archive` is the folder of the archive; None: there is
    none.
    """

    def __init__(
        self,
        database: Database,
        queues: SqliteQueues,
        *,
        tasks: Callable[[RunTask], TaskResult],
        clock: Callable[[], int],
        publish: Callable[[Publish], None],
        archive: Path | None,
    ) -> None:
        self.names = NAMES
        kept = ArchiveFolder(archive)
        self._queues = queues
        store, blobs = SqliteStore(database), SqliteBlobs(database, clock)
        self._performers: dict[type[Any], Callable[[Any], Any]] = {
            Query: store.query,
            QueryList: store.query_list,
            Together: store.query_together,
            Get: store.get,
            GetMany: store.get_many,
            PutIfAbsent: store.put_if_absent,
            Put: store.put,
            Replace: store.replace,
            Update: store.update,
            Delete: store.delete,
            Unlist: store.unlist,
            Extend: store.extend,
            PutBlob: blobs.put,
            GetBlob: blobs.get,
            PutArchive: kept.put,
            GetArchive: kept.get,
            Send: queues.send,
            RunTask: tasks,
            Publish: publish,
            Clock: lambda _: clock(),
            Pause: lambda pause: time.sleep(pause.milliseconds / 1_000),
            Measure: lambda _: None,
        }

    def perform(self, effect: Effect) -> Any:
        """Return the effect's result (see `runtime.effects`). `SetVisibility` needs
        `for_message`.
        """
        performer = self._performers.get(type(effect))
        if performer is None:
            raise HoldfastBug(f"{type(effect).__name__} cannot be performed here")
        return performer(effect)

    def for_message(self, queue: QueueName, receipt_handle: str) -> Callable[[Effect], Any]:
        """Return `perform` for the handler of one message of `queue`."""

        def perform(effect: Effect) -> Any:
            if isinstance(effect, SetVisibility):
                return self.extend_visibility(queue, [receipt_handle], effect.seconds)
            return self.perform(effect)

        return perform

    def extend_visibility(
        self, queue: QueueName, receipt_handles: Iterable[str], seconds: int
    ) -> None:
        # The receipt already names the message, and so its queue.
        del queue
        self._queues.extend_visibility(receipt_handles, seconds)

    def receive_dead_letters(self, queue: QueueName) -> list[DeadLetter]:
        return self._queues.receive_dead_letters(queue)

    def delete_dead_letter(self, queue: QueueName, receipt_handle: str) -> None:
        del queue
        self._queues.delete([receipt_handle])
