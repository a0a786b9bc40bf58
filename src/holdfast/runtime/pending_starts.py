"""Rows of accepted starts. With them the sweeper finds a start whose message was lost.

A start is accepted when it is stored. The start message makes a worker begin the execution soon,
but SQS may lose it, for example when an operator purges the queue. So each start first puts a row
with the whole content of the message. The sweeper reads the rows in the order of time, once each,
when they are `FIRST_MS` old (`maintenance/lost_starts.py`):

    10:00:00  the API puts the row 10:00:00#T#run, sends the message, answers the caller
    10:00:01  a worker begins the log
    10:16:00  the sweeper reads the row: the execution has a watchdog row, or has ended and
              reported to its parent; otherwise it sends the message again, and puts a row for
              the next check

**Cost.** One write for each start, and one read; for a child two reads. An input is packed where
that saves a write unit. The sweeper stores for each shard the key up to which it has read, so it
deletes no rows; TTL does.

**A late put.** The sweeper never reads a row that is put below that key. The key is always at least
`FIRST_MS` in the past, and the API's function ends after half a minute, so its row cannot be that
late. A caller that got no answer starts again, and that start puts a row with its own time.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from typing import Any, Final

from holdfast.core.run_ids import parent_run
from holdfast.limits import START_RETENTION_SECONDS
from holdfast.runtime import messages
from holdfast.runtime.effects import Clock, Effect, Get, Item, Message, NoResult, Put, Send
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading, with_packed_value, with_plain_value
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, Formats, require_format
from holdfast.runtime.storage.spread import STARTS

#: The sweeper checks a start for the first time after this. A worker has 15 minutes for a message.
#: So by then the execution is opened or has ended, or its message still waits in the queue, or the
#: message is lost.
FIRST_MS: Final = 15 * 60_000
#: The delay of the message of a repeated start. By then the first request has sent its message or
#: has crashed, because the API's function runs for at most half a minute; and most first tasks have
#: ended.
BEGIN_AGAIN_SECONDS: Final = 30
#: A row has the time of the execution's id if it is put so soon after it.
_ONE_REQUEST_MS: Final = 5_000
#: The formats of a row. Format 2 has its input compressed: code of format 1 would send a start
#: without an input.
ROW_FORMATS: Final = Formats(oldest=1, newest=2, asked=2)


def guard(body: Mapping[str, Any], stored_input: str | None = None) -> NoResult:
    """Put the row of a start message. `stored_input` is the partition of another row that already
    contains the input; this row then leaves the input out.
    """
    at_ms = _row_ms(str(body["run"]), (yield Clock()))
    yield Put(tables.MAIL, _item_of(body, at_ms, stored_input))


def _row_ms(run: str, now_ms: int) -> int:
    """Return the time of a row. That of a first start is the time in the id of the execution, so
    that `find` reads the row by the id alone. A start that is repeated later needs the present
    time, because the sweeper would not read a row of the past.
    """
    if parent_run(run) is not None:
        return now_ms
    minted_ms = keys.minted_ms(run)
    return minted_ms if 0 <= now_ms - minted_ms <= _ONE_REQUEST_MS else now_ms


def find(tenant: str, run: str) -> Generator[Effect, Any, Mapping[str, Any] | None]:
    """Return the start message of an execution that may not have begun. None for a child execution,
    and if the request needed long between the id and the row.
    """
    if parent_run(run) is not None:
        return None
    row_key = keys.pending_start(keys.minted_ms(run), tenant, run)
    row = yield Get(tables.MAIL, keys.pending_starts(STARTS.of(run)), row_key)
    return None if row is None else (yield from message_of(row))


def send_again(body: Mapping[str, Any]) -> NoResult:
    """Send the start message for a request that repeats an earlier one, after a delay, and marked
    as a replacement of the first message.

    The first message is usually in work. Without the delay, two workers that run the first task
    before record 0 is stored would both run it.
    """
    again = {**body, "of": [body["run"]], "released": 1}
    yield Send((Message(again, BEGIN_AGAIN_SECONDS),))


def _item_of(body: Mapping[str, Any], at_ms: int, stored_input: str | None) -> Item:
    tenant, run = str(body["t"]), str(body["run"])
    kept = {name: value for name, value in body.items() if name != "input"}
    place = body["input"] if stored_input is None else {"in": stored_input}
    item: dict[str, str | int | bytes] = {
        "pk": keys.pending_starts(STARTS.of(run)),
        "sk": keys.pending_start(at_ms, tenant, run),
        FORMAT_FIELD: FORMAT,
        "t": tenant,
        "run": run,
        "body": json.dumps(kept, ensure_ascii=False, separators=(",", ":")),
        "ttl": at_ms // 1_000 + START_RETENTION_SECONDS,
    }
    return with_packed_value({**item, **place}, ROW_FORMATS.newest)


def message_of(row: Item) -> Generator[Effect, Any, Mapping[str, Any]]:
    """Return the start message of the row. Raises HoldfastBug for a malformed row."""
    require_format(row, "the row of a start", ROW_FORMATS)
    with reading("the row of a start"):
        body, stored = json.loads(str(row["body"])), with_plain_value(row)
        if "in" in row:
            sort = keys.list_sort(body["t0"], body["run"])
            stored = (yield Get(tables.MAIL, str(row["in"]), sort)) or {}
        body["input"] = {key: stored[key] for key in ("v", "ref") if key in stored}
        return messages.require_readable(body)
