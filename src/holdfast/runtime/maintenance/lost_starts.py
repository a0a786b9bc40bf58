"""Starts whose message was lost: the sweeper sends them again (R18).

`pending_starts.py` says what the rows are. For each row, when it is `FIRST_MS` old:

    it has a watchdog row                            ─► nothing is left to do
    it has ended, and has reported to its parent     ─► nothing is left to do
    its log has begun, and no watchdog row guards it ─► send `recover`, put the row at a later time
    it has no log, and is in quarantine              ─► put the row at a later time
    it has no log                                    ─► send the start, put the row at a later time

A child of a task may end before it gets a watchdog row. If its worker crashes before the report to
the parent, and the queue then loses the start message, only the row leads to the child. Without the
report a parent without a time-out would wait for ever.

A start may wait in the queue for hours, behind many others. The sweeper cannot distinguish such a
start from a lost one, so it sends it again at growing intervals: after 15 minutes, 30 minutes, an
hour, then each hour. A second message of one start finds the log of the first.

The sweeper reads the rows in pages. After each page it stores the key up to which it has read. If a
sweeper crashes within a page, or two sweepers overlap, that page is processed again. A sweeper that
was suspended may store an older key, and the next one reads those rows again.

With more shards than at spread 0 the sweeper sends a message for each shard, and workers process
the shards in parallel: one process could not check the starts of a minute in a minute.

Every row ends: the sweeper ignores a row that is as old as `START_RESENT_SECONDS_MAX`. A row whose
processing fails keeps its TTL, so it is tried for at most two weeks.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from holdfast import resources
from holdfast.errors import HoldfastError, is_passing
from holdfast.limits import (
    START_RESENT_SECONDS_MAX,
    START_RETENTION_SECONDS,
    STARTS_SWEEP_MS,
    STARTS_SWEEP_PAGE,
    STARTS_SWEEP_ROWS_MAX,
    STARTS_WORKER_MS,
    SWEEP_SECONDS,
    WATCH_LOOK_SECONDS_MIN,
)
from holdfast.runtime import messages, pending_starts, watchdog
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    Item,
    Measure,
    Message,
    NoResult,
    Put,
    Query,
    Send,
)
from holdfast.runtime.maintenance import quarantine
from holdfast.runtime.pending_starts import FIRST_MS, ROW_FORMATS
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.format_control import require_writable
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, FORMATS, Formats, require_format
from holdfast.runtime.storage.log import Log, has_ended

_HOUR_MS = WATCH_LOOK_SECONDS_MIN * 1_000


def sweep(
    shard: int, owner: str, formats: Formats = FORMATS, longest_ms: int = STARTS_SWEEP_MS
) -> Generator[Effect, Any, list[HoldfastError]]:
    """Process the due rows. Return the errors of rows whose processing failed. Such a row is tried
    again: after a passing error in a minute, after another error in an hour. Rows that are left
    after `longest_ms` wait for the next sweep.
    """
    require_writable(formats)
    refused: list[HoldfastError] = []
    read = yield Get(tables.MAIL, keys.STARTS_READ, keys.starts_read(shard))
    read_to = None if read is None else str(read["to"])
    now_ms = yield Clock()
    until = keys.due_until(now_ms - FIRST_MS)
    for _ in range(STARTS_SWEEP_ROWS_MAX // STARTS_SWEEP_PAGE):
        rows = yield Query(
            tables.MAIL,
            keys.pending_starts(shard),
            after=read_to,
            until=until,
            limit=STARTS_SWEEP_PAGE,
        )
        done = yield from _page(rows, owner, formats, now_ms, refused)
        if done:
            read_to = str(rows[done - 1]["sk"])
            yield from _store_place(shard, read_to)
        if done < STARTS_SWEEP_PAGE or (yield Clock()) - now_ms > longest_ms:
            break
    return refused


def hand_out(shards: int) -> NoResult:
    """Send a message for each shard, so that workers process the shards in parallel. If such a
    message is lost, nothing is lost: the next sweep begins at the same row.
    """
    now_ms = yield Clock()
    yield Send(tuple(Message(messages.sweep_starts(shard, now_ms)) for shard in range(shards)))


def sweep_shard(
    body: Mapping[str, Any], owner: str, formats: Formats = FORMATS
) -> Generator[Effect, Any, list[HoldfastError]]:
    """Process a shard for the sweeper. Return the errors, as `sweep` does.

    A message that arrives after the next sweep is dropped, because that sweep has sent another.
    """
    now_ms = yield Clock()
    if now_ms - int(body["at"]) >= SWEEP_SECONDS * 1_000:
        return []
    return (yield from sweep(int(body["shard"]), owner, formats, STARTS_WORKER_MS))


def _page(
    rows: Sequence[Item],
    owner: str,
    formats: Formats,
    now_ms: int,
    refused: list[HoldfastError],
) -> Generator[Effect, Any, int]:
    """Process rows, and add their errors to `refused`. Return how many rows were passed: the next
    sweep begins at the first row with a passing error.
    """
    for number, row in enumerate(rows):
        try:
            if _is_young(row, now_ms):
                yield from _work_off(row, owner, formats, now_ms)
        except HoldfastError as error:
            yield Measure(resources.METRIC_SWEEP_REFUSED, 1)
            refused.append(error)
            if is_passing(error):
                # The service may be unavailable only for a while, so the next sweep begins at this
                # row.
                return number
            yield from _look_later(row, _HOUR_MS, now_ms)
    return len(rows)


def _store_place(shard: int, read_to: str) -> NoResult:
    yield Put(
        tables.MAIL,
        {
            "pk": keys.STARTS_READ,
            "sk": keys.starts_read(shard),
            FORMAT_FIELD: FORMAT,
            "to": read_to,
        },
    )


def _is_young(row: Item, now_ms: int) -> bool:
    """Return False for a start that is too old to be sent again. Raises HoldfastError for a damaged
    row.
    """
    return _age_ms(row, now_ms) <= START_RESENT_SECONDS_MAX * 1_000


def _age_ms(row: Item, now_ms: int) -> int:
    require_format(row, "the row of a start", ROW_FORMATS)
    with reading("the row of a start"):
        # Use the time in the message for the start of a child. The id of a child contains the start
        # time of its topmost parent, which may be months old.
        run = str(row["run"])
        started_ms = json.loads(str(row["body"]))["t0"] if "." in run else keys.minted_ms(run)
        return now_ms - int(started_ms)


def _work_off(row: Item, owner: str, formats: Formats, now_ms: int) -> NoResult:
    tenant, run = str(row["t"]), str(row["run"])
    if (yield from has_ended(tenant, run)) and (yield from _has_reported(row)):
        return
    log = Log(tenant, run, owner, "", formats)
    yield from log.load()
    # The watchdog row of an opened execution leads to its end, too.
    if log.is_gone or (log.state is not None and log.state.is_opened):
        return
    if log.state is not None and log.state.is_ended and (yield from _has_reported(row)):
        return
    body = yield from pending_starts.message_of(row)
    if (yield from quarantine.held_in(log)) is None:
        # Mark the new message as another delivery of the first one. Otherwise workers would count
        # it as another failure of the message.
        replaced = {"of": [run], "released": 1}
        has_begun = log.state is not None
        again = messages.recover(tenant, run) if has_begun else {**body, **replaced}
        is_work = has_begun or "parent" in body
        yield Send((Message(again),), "work" if is_work else "starts")
    age_ms = _age_ms(row, now_ms)
    next_ms = watchdog.next_age_ms(age_ms, FIRST_MS, 1, _HOUR_MS)
    kept = {**row, "ttl": now_ms // 1_000 + START_RETENTION_SECONDS}
    yield from _look_later(kept, next_ms - age_ms, now_ms)


def _has_reported(row: Item) -> Generator[Effect, Any, bool]:
    """Return True when the end of the execution is stored in the inbox of its parent, or when it
    reports to none. Only the child of a task has such a row: a recovery of its parent starts the
    child of a Map again.
    """
    with reading("the row of a start"):
        parent = json.loads(str(row["body"])).get("parent")
        if parent is None:
            return True
        inbox = keys.inbox(str(row["t"]), str(parent["run"]))
        key = keys.answer(parent["entry"], parent["attempt"])
    return (yield Get(tables.MAIL, inbox, key)) is not None


def _look_later(row: Item, later_ms: int, now_ms: int) -> NoResult:
    """Put the row again under a later key, which the sweeper reads at that time."""
    at_ms = now_ms + later_ms - FIRST_MS
    _, _, whose = str(row["sk"]).partition("#")
    yield Put(tables.MAIL, {**row, "sk": keys.later_start(at_ms, whose)})
