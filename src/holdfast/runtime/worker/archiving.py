"""The archive: an ended execution is stored in a bucket before TTL may delete its records.

In a stack with an archive a record is written without a TTL. So DynamoDB deletes nothing of an
execution that is not archived, however late the archiver is:

    10:00:00  the execution ends; its follow-ups put the row 11:00:00#T#run
    11:00:00  the sweeper sends a page of due rows to the workers (`maintenance/due_archives.py`)
    11:00:01  a worker reads the log, and puts the object with the execution and its history
              then it gives each record its TTL: 90 days after the end
              then it deletes the row

The order is what keeps the history: object, TTL, row. A worker that crashes leaves the row, and the
next one does all of it again. The key of the object follows from the execution and the number of
its last record, so a repeated put replaces the object by one with the same history.

A retry of an archived execution goes on with records without a TTL. Its next end has a row and an
object of its own. A retry begins with a snapshot when the log is older than 45 days (R16), so the
TTL of the earlier records does no harm.
"""

from __future__ import annotations

import gzip
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from holdfast import resources
from holdfast.core.decision import iso_time
from holdfast.core.state import Execution
from holdfast.errors import HoldfastError, is_passing
from holdfast.limits import ARCHIVE_REFUSED_SECONDS, RECORD_RETENTION_SECONDS, SWEEP_SECONDS
from holdfast.runtime import follow_ups
from holdfast.runtime.commands import presentation
from holdfast.runtime.commands.export_line import line_of
from holdfast.runtime.commands.presentation import without_secrets
from holdfast.runtime.effects import (
    Clock,
    Condition,
    Effect,
    Item,
    Measure,
    NoResult,
    Put,
    PutArchive,
    Query,
    Update,
    WriteDeadline,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import Record, reading
from holdfast.runtime.storage.formats import Formats, require_format
from holdfast.runtime.storage.histories import records_of
from holdfast.runtime.storage.log import Log


def archive_page(body: Mapping[str, Any], owner: str, formats: Formats) -> NoResult:
    """Archive the executions of a page. Raises the first error, after all rows: it is logged, and
    its row leads to the execution again.

    A message that comes after the next sweep is dropped, because that sweep has sent the rows
    again. Otherwise the messages would multiply while the archive cannot be written.
    """
    refused: list[HoldfastError] = []
    shard, sent_ms = int(body["shard"]), int(body["at"])
    if (yield Clock()) - sent_ms >= SWEEP_SECONDS * 1_000:
        return
    rows = yield Query(
        tables.MAIL,
        keys.archive_partition(shard),
        after=str(body["after"]),
        until=str(body["until"]),
    )
    for row in rows:
        if not (yield from _may_write()):
            # The next sweep sends the remaining rows again.
            break
        try:
            yield from _archive(row, owner, formats)
        except HoldfastError as error:
            refused.append(error)
            yield Measure(resources.METRIC_SWEEP_REFUSED, 1)
            if not is_passing(error):
                yield from _try_later(row)
    if refused:
        raise refused[0]


def _may_write() -> Generator[Effect, Any, bool]:
    """Return False after the invocation's deadline: then another worker may have received the
    message, and this one must write nothing (R9).
    """
    now_ms, limit_ms = (yield Clock()), (yield WriteDeadline())
    return bool(now_ms < limit_ms)


def _archive(row: Item, owner: str, formats: Formats) -> NoResult:
    require_format(row, "the row of an ended execution")
    with reading("the row of an ended execution"):
        log = Log(str(row["t"]), str(row["run"]), owner, "", formats)
    yield from log.load()
    state = log.state
    # Skip an execution that has not ended: a retry has continued it. Its next end will write
    # another row.
    if state is not None and state.is_ended:
        items = yield Query(tables.EXECUTIONS, log.partition)
        if int(items[-1]["sk"]) != log.sequence:
            # A retry has continued the execution since the load. The next sweep finds that out.
            return
        records = yield from records_of(log.tenant, log.run, items, formats)
        key = keys.archive_key(log.tenant, log.run, log.sequence)
        yield PutArchive(key, _packed(state, records, (yield Clock())))
        is_done = yield from _let_expire(log, state, items)
        if not is_done:
            return
    yield from follow_ups.drop_row(row)


def _packed(state: Execution, records: Sequence[Record], now_ms: int) -> bytes:
    # An ended execution waits for nothing, so its description is made without a source map and
    # without tokens.
    shown: Any = without_secrets(presentation.execution(state, {}, lambda *_: ""))
    events: list[Any] = [without_secrets(event) for _, event in presentation.history(records)]
    return gzip.compress(f"{line_of(shown, events, iso_time(now_ms))}\n".encode(), mtime=0)


def _let_expire(log: Log, state: Execution, items: Sequence[Item]) -> Generator[Effect, Any, bool]:
    """Give each record that has none its TTL. Return False when the time of this worker ends.

    No record gets less than the 90 days that every record has without an archive.
    """
    assert state.stopped_ms is not None
    ttl = state.stopped_ms // 1_000 + RECORD_RETENTION_SECONDS
    for item in items:
        if "ttl" in item:
            continue
        if not (yield from _may_write()):
            return False
        # If TTL has deleted the record since the query, the update without this condition would
        # create a record without content.
        there = Condition("at", "present")
        yield Update(tables.EXECUTIONS, log.partition, item["sk"], put={"ttl": ttl}, where=(there,))  # type: ignore[arg-type]
    return True


def _try_later(row: Item) -> NoResult:
    """Move the row of an execution that cannot be read, so that the others of its shard are not
    behind it.
    """
    _, _, whose = str(row["sk"]).partition("#")
    at_ms = (yield Clock()) + ARCHIVE_REFUSED_SECONDS * 1_000
    yield Put(tables.MAIL, {**row, "sk": keys.later_start(at_ms, whose)})
    yield from follow_ups.drop_row(row)
