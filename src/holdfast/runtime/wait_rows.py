"""The index of waits: what each listed execution waits for now.

The record that opens an execution has its waits in the list entry, at no further cost. A later
record has no list entry. If the execution then waits for something else, and the wait lasts, the
worker writes one row for the execution: one write unit, and one more at the end.

    record 4, "Opened"       list entry: waits for the event `paid`
    record 7, `paid` came    a task runs: no row, because it may only take a moment
    record 9, a question     row, `seq` 9: waits for role:credit_manager
    record 12, the end       row, `seq` 12, without waits; then the entry is removed (`Unlist`)

The row is in the table `mail`, partition `T#<scope>#waits#<shard>`, sorted as the list is. It has
the attributes of a list entry. A reader uses the row instead of the entry if its `seq` is that of a
later record.

Rules of this file:
* A row is written after the commit of its record. A condition on `seq` prevents that a worker that
  was suspended replaces the row of a later record.
* Each record says which waits are indexed (`wait_text.IndexedWaits`). So a worker that loads the
  log knows whether the row must be written, and whether the end must empty one.
* After a crash between a commit and its row, the next recovery or the sweeper's next check writes
  the row.
* The end leaves a row without waits, and TTL deletes it three hours later. Until then its `seq`
  prevents that a worker that was suspended before the end writes its older row.
* An open execution gets a new list entry before the TTL of its row (`Log.is_aging`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from holdfast import resources
from holdfast.core.state import Execution
from holdfast.core.subjects import indexed_subjects, lasting_subjects
from holdfast.limits import RECORD_RETENTION_SECONDS, WAIT_ROW_KEPT_SECONDS
from holdfast.runtime import listing, wait_text
from holdfast.runtime.effects import Condition, Effect, Get, Item, Update
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log
from holdfast.runtime.wait_text import IndexedWaits

#: The attribute of a row that has the number of the record for which it was written.
SEQUENCE: Final = "seq"
_CHECKSUM: Final = "wc"
#: Attributes that an older list entry may have and a newer one may lack. They are removed
#: explicitly, because otherwise an update of the entry would keep them.
_PASSING: Final = (
    resources.LIST_WAITS,
    resources.LIST_WAITING_SINCE,
    resources.LIST_PAUSED,
    resources.LIST_PAUSED_REASON,
)


def indexed_by_entry(log: Log, state: Execution, now_ms: int) -> IndexedWaits:
    """Return what the index contains when the record of a new list entry is stored."""
    checksum = 0 if state.is_ended else wait_text.checksum(_text(state, now_ms))
    return IndexedWaits(checksum, has_row=log.indexed.has_row)


def indexed_at_rest(log: Log, state: Execution, now_ms: int) -> IndexedWaits:
    """Return what the index contains after the worker has stopped because the execution waits.

    It differs from `log.indexed` when the execution waits for something else for some time.
    """
    if not lasting_subjects(state, now_ms):
        return log.indexed
    checksum = wait_text.checksum(_text(state, now_ms))
    is_known = checksum == log.indexed.checksum
    return log.indexed if is_known else IndexedWaits(checksum, has_row=True)


def _text(state: Execution, now_ms: int) -> str:
    return wait_text.text_of(indexed_subjects(state, now_ms))


def put_row(
    log: Log, now_ms: int, seconds: int = RECORD_RETENTION_SECONDS
) -> Generator[Effect, Any, None]:
    """Write the row of the newest record with a lifetime in seconds. The row of a later record
    stays.
    """
    assert log.state is not None
    attributes = _attributes(log, log.state, now_ms, now_ms // 1_000 + seconds)
    partition, sort = _key(log, log.state)
    yield Update(
        tables.MAIL,
        partition,
        sort,
        put=attributes,
        remove=tuple(name for name in _PASSING if name not in attributes),
        where=(Condition(SEQUENCE, "<", log.sequence, or_absent=True),),
    )


def drop_row(log: Log, now_ms: int) -> Generator[Effect, Any, None]:
    """Let TTL delete the row soon: the execution has ended, or its new list entry says the same.
    Until then the row prevents that a worker that was suspended writes an older one.
    """
    if log.indexed.has_row:
        yield from put_row(log, now_ms, WAIT_ROW_KEPT_SECONDS)


def repair_row(log: Log, now_ms: int) -> Generator[Effect, Any, None]:
    """Write the row that a crashed worker did not write. Costs one read when there is nothing to
    do.
    """
    assert log.state is not None
    if not log.indexed.has_row:
        return
    if log.state.opened_at == log.sequence:
        yield from drop_row(log, now_ms)
        return
    found = yield Get(tables.MAIL, *_key(log, log.state))
    if found is None or found.get(_CHECKSUM) != log.indexed.checksum:
        yield from put_row(log, now_ms)


def _key(log: Log, state: Execution) -> tuple[str, str]:
    partition = listing.waits_partition(log.tenant, state.workflow, log.run)
    return partition, keys.list_sort(state.started_ms, log.run)


def _attributes(log: Log, state: Execution, now_ms: int, ttl: int) -> dict[str, str | int]:
    own = {
        FORMAT_FIELD: FORMAT,
        SEQUENCE: log.sequence,
        _CHECKSUM: log.indexed.checksum,
        "ttl": ttl,
    }
    return {**listing.row_attributes(log.tenant, listing.entry_of(state, now_ms)), **own}


def read_row(item: Item) -> listing.ListEntry:
    """Return the row as a list entry, to replace the entry of its execution."""
    return listing.read_row(item, record=int(item[SEQUENCE]))
