"""Reads every execution of a store from its first record on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from holdfast.core.events import Event
from holdfast.core.state import Execution
from holdfast.errors import HoldfastError
from holdfast.runtime.effects import Item
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.codec import Reader, Record, blobs_named_by
from holdfast_simulator.services import Services


@dataclass(frozen=True)
class StoredHistory:
    """One execution as stored. `states`: the state after each of its records."""

    tenant: str
    run: str
    items: tuple[Item, ...]
    records: tuple[Record, ...]
    states: tuple[Execution, ...]

    @property
    def state(self) -> Execution:
        return self.states[-1]

    @cached_property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for record in self.records for event in record.events)

    @cached_property
    def copied(self) -> int:
        """Return how many events are copies of its origin's. `ExecutionForked` follows them; copied
        events may have one of that type, too, when the origin is a fork itself.
        """
        first = self.records[0].events if self.records else ()
        forks = (n for n, event in enumerate(first) if event.type == "ExecutionForked")
        return max(forks, default=0)

    def marked(self, record: Record) -> Iterator[tuple[Event, bool]]:
        """Yield the events of a record, and whether each is a copy: its origin ran it."""
        copied = self.copied if record is self.records[0] else 0
        return ((event, number < copied) for number, event in enumerate(record.events))

    @property
    def begun(self) -> Event:
        """Return the event with which it began."""
        return self.events[self.copied]

    @property
    def fork(self) -> Event | None:
        """Return the event with which it began as a fork."""
        return self.begun if self.begun.type == "ExecutionForked" else None


def histories(services: Services) -> list[StoredHistory]:
    """Return the executions of the store. Raises HoldfastError when a log cannot be read."""
    by_log: dict[str, list[Item]] = {}
    for item in services.items(tables.EXECUTIONS):
        by_log.setdefault(str(item["pk"]), []).append(item)
    blobs = by_digest(services)
    return [_history(pk, items, blobs) for pk, items in by_log.items()]


def history(services: Services, tenant: str, run: str) -> StoredHistory:
    """Return one execution of the store. Raises HoldfastError when its log cannot be read."""
    pk = f"{tenant}#{run}"
    items = [item for item in services.items(tables.EXECUTIONS) if item["pk"] == pk]
    return _history(pk, items, by_digest(services))


def by_digest(services: Services) -> dict[str, bytes]:
    return {key.rpartition("/")[2]: data for key, data in services.blobs().items()}


def _history(pk: str, items: list[Item], blobs: Mapping[str, bytes]) -> StoredHistory:
    tenant, _, run = pk.partition("#")
    missing = [digest for item in items for digest in blobs_named_by(item) if digest not in blobs]
    if missing:
        raise HoldfastError("HF901", f"execution {run} names blobs that are not stored: {missing}")
    reader = Reader(blobs)
    records, states = [], []
    for item in items:
        records.append(reader.record(item))
        assert reader.state is not None
        states.append(reader.state)
    return StoredHistory(tenant, run, tuple(items), tuple(records), tuple(states))
