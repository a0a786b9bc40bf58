"""Due rows of ended executions that are not archived yet: the sweeper hands them to workers.

Archiving takes longer than the sweeper has, so workers do it: `worker/archiving.py`. A page that is
lost costs nothing, because its rows stay where they are and the next sweep sends them again.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.limits import ARCHIVE_PAGE_ROWS, SWEEP_ROWS_MAX
from holdfast.runtime import messages
from holdfast.runtime.effects import Clock, Effect, Message, Query, Send
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.format_control import require_writable
from holdfast.runtime.storage.formats import FORMATS, Formats


def sweep(
    shard: int, owner: str, formats: Formats = FORMATS
) -> Generator[Effect, Any, list[HoldfastError]]:
    """Send a message for each page of due rows of the shard."""
    # Only the worker that archives an execution needs an owner, and not this sweep.
    del owner
    require_writable(formats)
    now_ms = yield Clock()
    rows = yield Query(
        tables.MAIL,
        keys.archive_partition(shard),
        until=keys.due_until(now_ms),
        limit=SWEEP_ROWS_MAX,
    )
    ends = [str(row["sk"]) for row in rows[ARCHIVE_PAGE_ROWS - 1 :: ARCHIVE_PAGE_ROWS]]
    if len(rows) % ARCHIVE_PAGE_ROWS:
        ends.append(str(rows[-1]["sk"]))
    pages = zip(["", *ends], ends, strict=False)
    sent = tuple(Message(messages.archive(shard, after, end, now_ms)) for after, end in pages)
    if sent:
        yield Send(sent)
    return []
