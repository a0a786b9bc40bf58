"""Performs a handler's effects on AWS."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from holdfast.aws.blobs import Archive, Blobs
from holdfast.aws.bus import Bus
from holdfast.aws.clients import Clients
from holdfast.aws.messaging import DeadLetter, Queues
from holdfast.aws.names import ResourceNames
from holdfast.aws.store import DynamoStore
from holdfast.errors import HoldfastBug
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


class Ports(Protocol):
    """The performer of effects, on AWS or on a local machine, and the queues."""

    @property
    def names(self) -> ResourceNames: ...

    def perform(self, effect: Effect) -> Any: ...
    def for_message(self, queue: QueueName, receipt_handle: str) -> Callable[[Effect], Any]: ...
    def extend_visibility(
        self, queue: QueueName, receipt_handles: Iterable[str], seconds: int
    ) -> None: ...
    def receive_dead_letters(self, queue: QueueName) -> list[DeadLetter]: ...
    def delete_dead_letter(self, queue: QueueName, receipt_handle: str) -> None: ...


class AwsPorts:
    """Performs effects on AWS. `tasks` runs user code, `clock` gives the time in ms, `metrics`
    receives measured values. `publish` sends an event; None: it goes to the account's default event
    bus.

    One instance serves all threads of a process. `has_threads`: it may send reads in parallel.
    """

    def __init__(
        self,
        clients: Clients,
        names: ResourceNames,
        *,
        tasks: Callable[[RunTask], TaskResult],
        clock: Callable[[], int],
        metrics: Callable[[Measure], None],
        publish: Callable[[Publish], None] | None = None,
        has_threads: bool = False,
    ) -> None:
        self.names = names
        self._queues = Queues(clients, names)
        store = DynamoStore(clients, names, has_threads=has_threads)
        blobs, archive = Blobs(clients, names), Archive(clients, names)
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
            PutArchive: archive.put,
            GetArchive: archive.get,
            Send: self._queues.send,
            RunTask: tasks,
            Publish: publish or Bus(clients).publish,
            Clock: lambda _: clock(),
            Pause: lambda pause: time.sleep(pause.milliseconds / 1_000),
            Measure: metrics,
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
        self._queues.extend_visibility(queue, receipt_handles, seconds)

    def receive_dead_letters(self, queue: QueueName) -> list[DeadLetter]:
        return self._queues.receive_dead_letters(queue)

    def delete_dead_letter(self, queue: QueueName, receipt_handle: str) -> None:
        self._queues.delete_dead_letter(queue, receipt_handle)
