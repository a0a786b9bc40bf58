"""Removes expired data: items after their TTL, blobs after their retention time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from holdfast import limits
from holdfast.local.sqlite.database import Database
from holdfast.resources import CACHE_BLOBS_PREFIX
from holdfast.runtime.storage import tables

#: The most rows of one transaction. More rows would delay the changes of workers.
ROWS_MAX: Final = 200
_DAY_MS: Final = 86_400_000


class _Expired(NamedTuple):
    """The rows to remove. `before` is the parameter of the condition."""

    condition: str
    before: int


def remove_expired(
    database: Database,
    now_ms: int,
    is_stopping: Callable[[], bool] = lambda: False,
    *,
    keeps_blobs: bool = False,
) -> int:
    """Remove expired rows. Return how many there were. `keeps_blobs`: in a stack with an archive a
    record may be older than the retention time of blobs, and its values must exist until it is
    archived. So only the blobs of cached results are removed.
    """
    ttl = _Expired("ttl < ?", now_ms // 1_000)
    cached = f" AND key GLOB '{CACHE_BLOBS_PREFIX}*'" if keeps_blobs else ""
    blobs = _Expired(f"stored_ms < ?{cached}", now_ms - limits.BLOB_RETENTION_DAYS * _DAY_MS)
    removed = _remove(database, tables.EXECUTIONS, ttl, is_stopping)
    removed += _remove(database, tables.MAIL, ttl, is_stopping)
    return removed + _remove(database, "blobs", blobs, is_stopping)


def _remove(
    database: Database, table: str, expired: _Expired, is_stopping: Callable[[], bool]
) -> int:
    key = "key" if table == "blobs" else "rowid"
    statement = (
        f"DELETE FROM {table} WHERE {key} IN "
        f"(SELECT {key} FROM {table} WHERE {expired.condition} LIMIT {ROWS_MAX})"
    )
    found = f"SELECT 1 FROM {table} WHERE {expired.condition} LIMIT 1"
    removed = 0
    # Read before the delete. Most rounds find nothing, and a read needs neither a lock nor a
    # commit.
    while not is_stopping() and database.read(
        lambda reader: reader.execute(found, (expired.before,)).fetchone()
    ):
        removed += database.write(
            lambda writer: writer.execute(statement, (expired.before,)).rowcount
        )
    return removed
