"""The log of one execution: loading it, and appending one record.

The log is the only truth about an execution: its state is the fold of the log's events. Two workers
may process the same execution, so an append must let only one of them succeed. DynamoDB's
conditional put does that without a lock: record n + 1 has a fixed key, and the put succeeds only if
no item has that key.

Rules of this file (R1, R2, R6 in docs/reference/log.md):
* A commit is one PutIfAbsent at (execution, last + 1). A worker whose put is refused reloads.
* When a put gets no answer, a read of that key decides. If the item has this worker's nonce, the
  put was stored. If there is no item, the worker sends the same bytes again, because the first put
  may still arrive.
* A nonce belongs to one content. Other bytes get a new nonce.

    worker A: load 0…4 ─ decide ─ put 5 ────────────► stored
    worker B: load 0…4 ─ decide ─── put 5 ─► refused ─ load 5 ─ offer the facts again ─ put 6

Example: A's put of record 5 times out at 10:00:01, so A does not know whether it was stored. A
reads key 5. If it finds its own nonce, it continues. If it finds B's nonce, B has committed first.
If it finds nothing, it puts the same bytes again: if the first put arrives later, either it is
refused or the second one is, and both have the same content.

**Snapshots.** A long log is not folded from its start. A record may contain a snapshot of the state
after it; loading begins at the newest one (`sn` of the last record). A snapshot also keeps a log
readable: TTL removes records after 90 days, and before that a snapshot makes the old ones
unnecessary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from holdfast import resources
from holdfast.core.advance import Transition
from holdfast.core.events import Event
from holdfast.core.state import Execution, Status
from holdfast.cost import item_bytes
from holdfast.errors import SnapshotError
from holdfast.limits import (
    CLOCK_ERROR_MS,
    END_SPAN_SECONDS_MAX,
    LOAD_RECORDS_WITHOUT_HINT,
    NEWER_RECORDS_MAX,
    READ_BACK_QUERIES_MAX,
    RECORD_AGING_SECONDS,
    RECORD_RETENTION_SECONDS,
    SNAPSHOT_BYTES_MIN,
    SNAPSHOT_RATIO,
    VALUE_INLINE_BYTES_MAX,
)
from holdfast.runtime.effects import (
    Clock,
    Doubt,
    Effect,
    Get,
    GetBlob,
    Item,
    PutBlob,
    PutIfAbsent,
    Query,
)
from holdfast.runtime.messages import Hint
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import (
    Encoded,
    Header,
    Reader,
    Record,
    blobs_named_by,
    encode_record,
    head,
    reading,
    with_snapshot,
)
from holdfast.runtime.storage.formats import (
    FORMAT_FIELD,
    FORMATS,
    Formats,
    format_for,
    require_format,
)
from holdfast.runtime.storage.records import Records
from holdfast.runtime.storage.value_book import ValueBook
from holdfast.runtime.wait_text import UNLISTED, IndexedWaits

Reads: TypeAlias = Generator[Effect, Any, None]

# After this many attempts to store one record without an answer, the delivery ends. SQS then
# delivers the message again.
DOUBTS_MAX = 5


@dataclass
class Log:
    """One execution's log as this worker has loaded it. Mutable; lives for one delivery.

    * `sequence`: the number of the newest record, -1 without records.
    * `records`: those that were read, oldest first. The record with the newest snapshot, and those
      before it, are without events.
    * `base_ms`: when the oldest needed record was written. TTL must not delete that record.
    * `format`: of the newest record; the format of a log never falls. `base_format`: of the oldest
      needed record.
    * `indexed`: what the index of waits contains.
    * `unmeasured`: loaded records whose size `bytes_since_snapshot` does not include yet.
    * `is_gone`: the execution has ended, and TTL has begun to delete its records.
    * `has_succeeded`: the execution has succeeded, and `load` has left its state unread.
    * `is_archived`: this stack archives ended executions. A record has no TTL until the archiver
      has stored its execution (`worker/archiving.py`).
    * `written`: the records that this delivery has committed, those that a later delivery may need.
      Their events have no details.
    * `is_exact`: state and book equal those of the stored records. False from the encoding of a
      record until it is stored.
    """

    tenant: str
    run: str
    owner: str
    message: str
    formats: Formats = FORMATS
    is_archived: bool = False
    partition: str = field(init=False)
    state: Execution | None = None
    is_gone: bool = False
    has_succeeded: bool = False
    sequence: int = -1
    snapshot: int = -1
    book: ValueBook = field(default_factory=ValueBook)
    records: Records = field(default_factory=Records)
    base_ms: int = 0
    base_format: int = 0
    format: int = 0
    bytes_since_snapshot: int = 0
    unmeasured: list[Item] = field(default_factory=list)
    snapshot_check_bytes: int = SNAPSHOT_BYTES_MIN
    nonces: int = 0
    newest_nonce: str = ""
    written: list[Record] = field(default_factory=list)
    blob_bytes: int = 0
    is_exact: bool = False
    indexed: IndexedWaits = UNLISTED

    def __post_init__(self) -> None:
        self.partition = keys.execution(self.tenant, self.run)

    def is_aging(self, now_ms: int) -> bool:
        """Return True when TTL will soon delete a record that is needed: the oldest one that a load
        reads, or the one in the list.
        """
        return self._is_base_aging(now_ms) or (
            self.state is not None
            and self.state.opened_at is not None
            and now_ms - self.state.opened_ms > RECORD_AGING_SECONDS * 1_000
        )

    def _is_base_aging(self, now_ms: int) -> bool:
        return self.sequence >= 0 and now_ms - self.base_ms > RECORD_AGING_SECONDS * 1_000

    @property
    def is_behind(self) -> bool:
        """Return True when a record that a load needs has an older format than the stack
        requests.
        """
        return self.sequence >= 0 and self.base_format < self.formats.asked

    @property
    def hint(self) -> Hint:
        return Hint(self.sequence, self.snapshot)

    # -- loading -----------------------------------------------------------------------------------

    def load(self, hint: Hint | None = None, *, needs_success: bool = True) -> Reads:
        """Load the log: one strongly consistent query backwards to the newest snapshot, then fold
        the records after it.

        Without `needs_success` the state of an execution that has succeeded is left unread. A log
        with a record of this message is always read, because a recovery needs it.
        """
        limit = LOAD_RECORDS_WITHOUT_HINT
        if hint is not None:
            limit = max(1, hint.sequence - hint.snapshot + 3)
        newest_first = yield Query(tables.EXECUTIONS, self.partition, reverse=True, limit=limit)
        now_ms = yield Clock()
        self._forget()
        if not newest_first:
            return
        with reading(f"the log of execution {self.run}"):
            if is_over(newest_first[0], now_ms):
                # TTL deletes the records of an ended execution in any order. So the records that
                # remain may be incomplete, and the execution counts as deleted.
                return
            what = f"the newest record of execution {self.run}"
            require_format(newest_first[0], what, self.formats)
            if not needs_success and self._has_succeeded(newest_first):
                self.has_succeeded = True
                return
            items = yield from self._back_to_snapshot(newest_first)
            self.is_gone = _is_being_taken(items, now_ms)
            if not self.is_gone:
                yield from self._fold(items)
                first = self.records[0].sequence
                before = [head(item) for item in newest_first[::-1] if int(item["sk"]) < first]
                self.records = Records((*before, *self.records))

    def _has_succeeded(self, newest_first: list[Item]) -> bool:
        is_own = any(head(item).message == self.message for item in newest_first)
        return newest_first[0]["st"] == "SUCCEEDED" and not is_own

    def load_newer(self, kept: Log) -> Generator[Effect, Any, bool]:
        """Continue from a log that an earlier delivery in this process has kept, with one strongly
        consistent query for newer records. Return False when the log must be loaded instead.

        The query also reads the newest record that is known. If the table has another record with
        that number, the kept log is not this one.
        """
        if not (kept.base_format in self.formats and kept.format in self.formats):
            return False
        after = kept.sequence - 1
        items = yield Query(tables.EXECUTIONS, self.partition, after=after, limit=NEWER_RECORDS_MAX)
        now_ms = yield Clock()
        with reading(f"the log of execution {self.run}"):
            if (
                not items
                or len(items) == NEWER_RECORDS_MAX
                or (items[0].get("w"), items[0].get(FORMAT_FIELD))
                != (kept.newest_nonce, kept.format)
                or is_over(items[-1], now_ms)
            ):
                return False
            for name in _KEPT:
                setattr(self, name, getattr(kept, name))
            newer = yield from self._fold_newer(items[1:])
        self.records = kept.records
        self.records.extend(kept.written)
        self.records.extend(newer)
        self.records.forget_before(self._oldest_needed)
        return True

    @property
    def _oldest_needed(self) -> int:
        """Return the number of the first record that a load without a hint would read, or of an
        earlier one.
        """
        return self.snapshot - LOAD_RECORDS_WITHOUT_HINT

    def _fold_newer(self, items: list[Item]) -> Generator[Effect, Any, list[Record]]:
        if not items:
            return []
        blobs = yield from fetch_blobs(self.tenant, self.run, items, self.formats)
        self.blob_bytes += sum(map(len, blobs.values()))
        reader = Reader(blobs, self.formats)
        assert self.state is not None
        reader.resume(self.state, self.book, self.sequence)
        records = []
        for item in items:
            records.append(reader.record(item))
            self.unmeasured.append(item)
            if "so" in item:
                self._based_on(item)
        self._at(reader, items[-1])
        return records

    def _based_on(self, item: Item) -> None:
        """Record that a load needs nothing older than this record."""
        self.base_ms, self.base_format = int(item["at"]), int(item[FORMAT_FIELD])
        self.bytes_since_snapshot, self.unmeasured = 0, []
        self.snapshot_check_bytes = SNAPSHOT_BYTES_MIN

    def _at(self, reader: Reader, newest: Item) -> None:
        self.state, self.book = reader.state, reader.book
        self.sequence, self.snapshot = int(newest["sk"]), int(newest["sn"])
        self.newest_nonce, self.format = str(newest["w"]), int(newest[FORMAT_FIELD])
        self.indexed = IndexedWaits.of(newest)
        self.is_exact = True

    def read_back(self, to_ms: int) -> Reads:
        """Read older records, up to a limit: another worker may have written more since the first
        query.
        """
        for _ in range(READ_BACK_QUERIES_MAX):
            if not self.may_reach_beyond(to_ms):
                return
            until = self.records[0].sequence - 1
            query = Query(tables.EXECUTIONS, self.partition, until=until, reverse=True, limit=100)
            older = yield query
            if not older:
                return
            with reading(f"the log of execution {self.run}"):
                self.records = Records((*map(head, older[::-1]), *self.records))

    def may_reach_beyond(self, to_ms: int) -> bool:
        """Return True when there are records older than those that were read, and some of them may
        be later than `to_ms`.
        """
        first = self.records[0]
        return first.sequence > 0 and first.at_ms >= to_ms - 2 * CLOCK_ERROR_MS

    def _back_to_snapshot(self, newest_first: list[Item]) -> Generator[Effect, Any, list[Item]]:
        base = _base_of(newest_first[0])
        items = [item for item in reversed(newest_first) if int(item["sk"]) >= base]
        if int(items[0]["sk"]) > base:
            older = yield Query(
                tables.EXECUTIONS, self.partition, after=base - 1, until=int(items[0]["sk"]) - 1
            )
            items = [*older, *items]
        return items

    def _fold(self, items: list[Item]) -> Reads:
        try:
            yield from self._read(items, has_snapshot=int(items[0]["sn"]) == int(items[0]["sk"]))
        except SnapshotError:
            base = int(items[0]["sk"])
            older = yield Query(tables.EXECUTIONS, self.partition, until=base - 1)
            items = [*older, *items]
            if int(items[0]["sk"]) > 0:
                raise
            # This code cannot read the snapshot, because other code wrote it with other fields of
            # the state. A snapshot repeats only what the events of the log say, so compute the
            # state from all events instead. Otherwise no execution could continue after such a
            # deployment.
            yield from self._read(items, has_snapshot=False)

    def _forget(self) -> None:
        self.state, self.is_gone, self.has_succeeded = None, False, False
        self.sequence = self.snapshot = -1
        self.base_format = self.format = 0
        self.book, self.records = ValueBook(), Records()
        self.bytes_since_snapshot, self.unmeasured = 0, []
        self.snapshot_check_bytes = SNAPSHOT_BYTES_MIN
        self.indexed = UNLISTED
        self.written, self.blob_bytes, self.is_exact = [], 0, False

    def _read(self, items: list[Item], *, has_snapshot: bool) -> Reads:
        blobs = yield from fetch_blobs(self.tenant, self.run, items, self.formats)
        reader = Reader(blobs, self.formats)
        since: list[Item] = items
        heads: tuple[Record, ...] = ()
        if has_snapshot:
            reader.from_snapshot(items[0])
            since, heads = items[1:], (head(items[0]),)
        self.records = Records((*heads, *map(reader.record, since)))
        self._based_on(items[0])
        self.unmeasured = list(since)
        self.blob_bytes = sum(map(len, blobs.values()))
        self._at(reader, items[-1])

    # -- committing --------------------------------------------------------------------------------

    def commit(
        self,
        step: Transition,
        now_ms: int,
        listing: Item,
        indexed: IndexedWaits | None = None,
    ) -> Generator[Effect, Any, bool]:
        """Return True when the record is in the log; False when another worker's record has its
        number.

        `indexed` is what the index of waits contains from this record on, None for no change.
        """
        indexed = self.indexed if indexed is None else indexed
        self.is_exact = False
        encoded = self._encode(step, now_ms, listing, indexed)
        for key, data in encoded.blobs.items():
            yield PutBlob(key, data)
        if not (yield from put_surely(tables.EXECUTIONS, encoded.item)):
            return False
        self._committed(step, encoded, now_ms)
        self.indexed = indexed
        return True

    def _encode(
        self, step: Transition, now_ms: int, listing: Item, indexed: IndexedWaits
    ) -> Encoded:
        self.nonces += 1
        status = step.state.status
        needed = [format_for(event.type, event.details) for event in step.events]
        header = Header(
            format=max(self.formats.asked, self.format, *needed),
            tenant=self.tenant,
            run=self.run,
            partition=self.partition,
            sequence=self.sequence + 1,
            nonce=f"{self.owner}.{self.nonces}",
            message=self.message,
            at_ms=now_ms,
            ttl=None if self.is_archived else now_ms // 1_000 + RECORD_RETENTION_SECONDS,
            newest_snapshot=self.snapshot,
            listing=listing,
            indexed=indexed,
        )
        must_snapshot = self._must_snapshot(status, header)
        # TTL may delete the older records while the events of a record with a snapshot are still
        # read. So such a record must contain all of its values and refer to none in an older
        # record.
        book = ValueBook() if must_snapshot else self.book
        encoded = encode_record(header, step.events, status, book)
        if encoded.needs_format > header.format and status == "RUNNING":
            header = replace(header, format=encoded.needs_format)
            must_snapshot = self._must_snapshot(status, header)
            encoded = encode_record(header, step.events, status, ValueBook())
        if status != "RUNNING" and not must_snapshot:
            return encoded
        grown = self._measured() + encoded.size
        if grown <= self.snapshot_check_bytes and not must_snapshot:
            return encoded
        candidate = with_snapshot(encoded, header, step.state)
        pays_from = SNAPSHOT_RATIO * candidate.snapshot_bytes
        if grown > pays_from or must_snapshot:
            return candidate
        self.snapshot_check_bytes = max(SNAPSHOT_BYTES_MIN, pays_from)
        return encoded

    def _must_snapshot(self, status: Status, header: Header) -> bool:
        """Return True when the record must have a snapshot, so that older records are not needed:
        TTL will delete them (R16), or they have an old format.
        """
        if self.sequence < 0:
            return False
        if status != "RUNNING":
            return header.at_ms - self.base_ms > END_SPAN_SECONDS_MAX * 1_000
        return self._is_base_aging(header.at_ms) or self.base_format < header.format

    def _committed(self, step: Transition, encoded: Encoded, now_ms: int) -> None:
        self.state = step.state
        self.sequence += 1
        self.book = encoded.book
        self.format = int(encoded.item[FORMAT_FIELD])
        self.newest_nonce, self.is_exact = str(encoded.item["w"]), True
        events = tuple(map(_without_values, step.events))
        record = Record(self.sequence, self.newest_nonce, self.message, now_ms, events)
        self.written.append(record)
        self.blob_bytes += sum(map(len, encoded.blobs.values()))
        has_snapshot = int(encoded.item["sn"]) == self.sequence
        if self.sequence == 0 or has_snapshot:
            self.base_ms, self.base_format = now_ms, self.format
        if has_snapshot:
            self.snapshot = self.sequence
            self.blob_bytes = sum(map(len, encoded.blobs.values()))
            self.bytes_since_snapshot, self.unmeasured = 0, []
            # The next snapshot is rarely smaller than this one. Without this bound, each would be
            # encoded twice: first when it does not pay yet.
            pays_from = SNAPSHOT_RATIO * encoded.snapshot_bytes
            self.snapshot_check_bytes = max(SNAPSHOT_BYTES_MIN, pays_from)
            oldest = self._oldest_needed
            self.written = [one for one in self.written if one.sequence >= oldest]
        else:
            self.bytes_since_snapshot += encoded.size

    @property
    def stored_bytes(self) -> int:
        """Return the approximate size of the stored records from which the state is read."""
        return self._measured() + self.blob_bytes + VALUE_INLINE_BYTES_MAX

    def _measured(self) -> int:
        """Return the bytes since the snapshot. They are counted here, and not at the load, because
        most loads never need them.
        """
        self.bytes_since_snapshot += sum(map(item_bytes, self.unmeasured))
        self.unmeasured = []
        return self.bytes_since_snapshot


#: The fields of `Log` that depend only on the stored log, and not on the delivery that has loaded
#: it.
_KEPT: Final = (
    "state",
    "sequence",
    "snapshot",
    "book",
    "base_ms",
    "base_format",
    "format",
    "bytes_since_snapshot",
    "unmeasured",
    "snapshot_check_bytes",
    "newest_nonce",
    "blob_bytes",
    "is_exact",
    "indexed",
)


# -- deletion by TTL -------------------------------------------------------------------------------


def kept(items: list[Item], now_ms: int) -> list[Item]:
    """Return the records that can be read: from record 0, or from the first snapshot that TTL has
    left complete.

    `items` are all stored records of the log, oldest first. The result is empty where `Log.load`
    finds no log.
    """
    young = [item for item in items if not is_over(item, now_ms)]
    if not young or int(young[0]["sk"]) == 0:
        return young
    snapshots = (number for number, item in enumerate(young) if "so" in item)
    first = next(snapshots, None)
    if first is not None:
        return young[first:]
    return [] if _is_being_taken(young, now_ms) else items


def has_ended(tenant: str, run: str) -> Generator[Effect, Any, bool]:
    """Return True when the execution had ended lately. The read is eventually consistent: after
    False, the strongly consistent load of the log decides.
    """
    partition = keys.execution(tenant, run)
    newest = yield Query(tables.EXECUTIONS, partition, reverse=True, limit=1, is_strong=False)
    return bool(newest) and newest[0].get(resources.LIST_STATUS, "RUNNING") != "RUNNING"


def is_over(item: Item, now_ms: int) -> bool:
    return "ttl" in item and int(item["ttl"]) * 1_000 <= now_ms


def _is_being_taken(items: list[Item], now_ms: int) -> bool:
    """Return True when TTL has deleted records of an ended log.

    If a record is missing before its TTL, or in the log of an open execution, the log is damaged.
    """
    oldest, newest = items[0], items[-1]
    if newest["st"] == "RUNNING":
        return False
    if int(oldest["sk"]) == _base_of(newest):
        return is_over(oldest, now_ms)
    # Every release keeps the records for at least this time after an end. If a record is missing
    # earlier, TTL has not deleted it, and the log is damaged.
    sure_seconds = RECORD_RETENTION_SECONDS - RECORD_AGING_SECONDS
    return int(newest["at"]) + 1_000 * sure_seconds <= now_ms


def _base_of(newest: Item) -> int:
    """Return the number of the oldest record that a load needs."""
    return max(int(newest["sn"]), 0)


# -- writes and reads with an unknown outcome ------------------------------------------------------


def put_surely(table: Any, item: Item) -> Generator[Effect, Any, bool]:
    """Put the item. Return True when exactly this item is stored (by its nonce `w`), False when
    another one is (R6).
    """
    for _ in range(DOUBTS_MAX):
        try:
            found = yield PutIfAbsent(table, item)
            return found is None or found.get("w") == item["w"]
        except Doubt as doubt:
            there = yield Get(table, str(item["pk"]), item["sk"])  # type: ignore[arg-type]
            if there is not None:
                return bool(there.get("w") == item["w"])
            last = doubt
    raise last


def fetch_blobs(
    tenant: str, run: str, items: Iterable[Item], formats: Formats = FORMATS
) -> Generator[Effect, Any, dict[str, bytes]]:
    """Return the blobs that the items name, by hash. The content of each is checked against its
    hash.
    """
    found: dict[str, bytes] = {}
    for item in items:
        require_format(item, f"record {item['sk']!r} of execution {run}", formats)
        for digest in blobs_named_by(item):
            if digest not in found:
                found[digest] = yield GetBlob(keys.blob(tenant, run, digest))
    return found


def draw(run: str, sequence: int, counter: int) -> float:
    """Return a number in [0, 1) that is the same for every worker that writes this record."""
    digest = hashlib.sha256(f"{run}#{sequence}#{counter}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)


def _without_values(event: Event) -> Event:
    """Return the event for the memory of this process: values would keep every version of a
    growing list. The failure with a traceback keeps its task and error, for descriptions.
    """
    return event if "traceback" in event.holdfast else event._replace(details={})
