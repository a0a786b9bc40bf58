"""Reading the history of an execution: all records of its log, or a part of them.

A record refers to values in older records, so it cannot be decoded alone. A snapshot contains every
value that later records refer to. A part of the log is therefore read from the newest snapshot
before it. A page of a long history costs the read of the page and of the records since that
snapshot:

    record     0 … 40   41 … 77   78 … 120
    snapshot        40        77
    page from record 90:  base 77, decoded 78 … 89 (not shown), shown 90 … 97

If records are missing in a part, TTL has begun to delete the log; the whole log is then read
(`read_records`). The same happens if a snapshot was written by code with other fields of the state.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from holdfast.errors import SnapshotError
from holdfast.runtime.effects import Clock, Effect, Item, Query
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import Reader, Record, reading
from holdfast.runtime.storage.formats import FORMATS, Formats
from holdfast.runtime.storage.log import fetch_blobs, is_over, kept

Records: TypeAlias = Generator[Effect, Any, list[Record]]

# The first query for a page reads this many records, and each further query reads three times as
# many as the one before. A record contains between one event and thousands, so it is not known how
# many records a page needs.
_PART_RECORDS: Final = 3
_PART_RECORDS_MAX: Final = 81


def read_records(tenant: str, run: str, formats: Formats = FORMATS) -> Records:
    """Return the records of an execution, [] for one without records. Costs a read of the whole
    log.
    """
    items = yield Query(tables.EXECUTIONS, keys.execution(tenant, run))
    return (yield from records_of(tenant, run, items, formats))


def records_of(tenant: str, run: str, items: list[Item], formats: Formats = FORMATS) -> Records:
    """Return the records in order. If TTL has deleted the oldest ones, they begin with the first
    snapshot.
    """
    now_ms = yield Clock()
    with reading(f"the log of execution {run}"):
        items = kept(items, now_ms)
    blobs = yield from fetch_blobs(tenant, run, items, formats)
    reader = Reader(blobs, formats)
    heads: list[Record] = []
    if items and int(items[0]["sk"]) > 0 and "so" in items[0]:
        reader.from_snapshot(items[0])
        heads, items = [reader.base(items[0])], items[1:]
    return [*heads, *[reader.record(item) for item in items]]


# -- a part of a log -------------------------------------------------------------------------------


class _NotInPartsError(Exception):
    """The log cannot be read in parts: it must be read as a whole."""


@dataclass
class Forwards:
    """Reads the records from number `first` on, a part at a time, oldest first. Mutable: it
    remembers its position.
    """

    tenant: str
    run: str
    first: int
    formats: Formats = FORMATS
    _part: _Part = field(init=False)
    _limit: int = _PART_RECORDS
    _is_read: bool = False

    def __post_init__(self) -> None:
        self._part = _Part(self.tenant, self.run, self.formats)

    def next(self) -> Records:
        """Return the next records, [] after the last one."""
        if self._is_read:
            return []
        first = self.first
        try:
            records = yield from self._next()
        except (_NotInPartsError, SnapshotError):
            records = yield from read_records(self.tenant, self.run, self.formats)
            self._is_read = True
        return [record for record in records if record.sequence >= first]

    def _next(self) -> Records:
        # Read one record before `first`, too. It names the snapshot from which this record and
        # later ones take their values.
        after = self._part.sequence if self._part.is_begun else self.first - 2
        items = yield from self._part.query(after=after, limit=self._limit)
        self._is_read = len(items) < self._limit
        self._limit = min(3 * self._limit, _PART_RECORDS_MAX)
        if not self._part.is_begun:
            items = yield from self._part.begun(items, max(self.first - 1, 0))
        records = yield from self._part.records(items)
        self.first = max(self.first, self._part.sequence + 1)
        return records


def backwards(tenant: str, run: str, before: int | None, formats: Formats = FORMATS) -> Records:
    """Return the last records before number `before` (None: the newest records), oldest first; []
    if there are none. They are the records since a snapshot, or a few more.
    """
    part = _Part(tenant, run, formats)
    until = None if before is None else before - 1
    try:
        newest_first = yield from part.query(until=until, limit=_PART_RECORDS)
        if not newest_first:
            return []
        items = newest_first[::-1]
        items = yield from part.begun(items, int(items[0]["sk"]))
        if items:
            return (yield from part.records(items))
    except (_NotInPartsError, SnapshotError):
        pass
    records = yield from read_records(tenant, run, formats)
    return [one for one in records if before is None or one.sequence < before]


@dataclass
class _Part:
    """Consecutive decoded records. `sequence` is the number of the last one, or of the snapshot
    with which they begin.
    """

    tenant: str
    run: str
    formats: Formats
    sequence: int = -1
    is_begun: bool = False
    _blobs: dict[str, bytes] = field(default_factory=dict)
    _reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        self._reader = Reader(self._blobs, self.formats)

    def query(
        self, *, limit: int | None, after: int | None = None, until: int | None = None
    ) -> Generator[Effect, Any, list[Item]]:
        """Return records of the log. Without `after` the newest ones come first."""
        found: list[Item] = yield Query(
            tables.EXECUTIONS,
            keys.execution(self.tenant, self.run),
            after=after,
            until=until,
            reverse=after is None,
            limit=limit,
        )
        now_ms = yield Clock()
        if any(is_over(item, now_ms) for item in found):
            raise _NotInPartsError
        return found

    def begun(self, items: list[Item], lowest: int) -> Generator[Effect, Any, list[Item]]:
        """Begin at the newest snapshot that these records need. Return the records after it.

        `items` are consecutive records; the first one has the number `lowest`.
        """
        self.is_begun = True
        if lowest == 0:
            return items
        with reading(f"the log of execution {self.run}"):
            if not items or int(items[0]["sk"]) != lowest:
                raise _NotInPartsError
            base = int(items[0]["sn"])
            if base < lowest:
                older = yield from self.query(after=max(base, 0) - 1, until=lowest - 1, limit=None)
                items = [*older, *items]
        if base < 0:
            return items
        first, *rest = items
        if int(first["sk"]) != base:
            raise _NotInPartsError
        yield from self._fetch([first])
        self._reader.from_snapshot(first)
        self.sequence = base
        return rest

    def records(self, items: Sequence[Item]) -> Records:
        numbers = [int(item["sk"]) for item in items]
        if numbers != list(range(self.sequence + 1, self.sequence + 1 + len(items))):
            raise _NotInPartsError
        yield from self._fetch(items)
        self.sequence += len(items)
        return [self._reader.record(item) for item in items]

    def _fetch(self, items: Sequence[Item]) -> Generator[Effect, Any, None]:
        blobs = yield from fetch_blobs(self.tenant, self.run, items, self.formats)
        self._blobs.update(blobs)
