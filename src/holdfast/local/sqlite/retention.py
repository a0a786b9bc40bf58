"""Removes expired data: items after their TTL, blobs after their retention time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from holdfast import limits
from holdfast.local.sqlite.database import Database
from holdfast.runtime.storage import tables

#: The most rows of one transaction. More rows would delay the changes of workers.
ROWS_MAX: Final = 200
_DAY_MS: Final = 86_400_000


def remove_expired(
    database: Database,
    now_ms: int,
    is_stopping: Callable[[], bool] = lambda: False,
    *,
    keeps_blobs: bool = False,
) -> int:
    """Remove expired rows. Return how many there were. `keeps_blobs`: in a stack with an archive a
    record may be older than the retention time of blobs, and its values must exist until it is
    archived.
    """
    removed = _remove(database, tables.EXECUTIONS, "ttl", now_ms // 1_000, is_stopping)
    removed += _remove(database, tables.MAIL, "ttl", now_ms // 1_000, is_stopping)
    if not keeps_blobs:
        blobs_before = now_ms - limits.BLOB_RETENTION_DAYS * _DAY_MS
        removed += _remove(database, "blobs", "stored_ms", blobs_before, is_stopping)
    return removed


def _remove(
    database: Database, table: str, column: str, before: int, is_stopping: Callable[[], bool]
) -> int:
    key = "key" if table == "blobs" else "rowid"
    statement = (
        f"DELETE FROM {table} WHERE {key} IN "
        f"(SELECT {key} FROM {table} WHERE {column} < ? LIMIT {ROWS_MAX})"
    )
    found = f"SELECT 1 FROM {table} WHERE {column} < ? LIMIT 1"
    removed = 0
    # Read before the delete. Most rounds find nothing, and a read needs neither a lock nor a
    # commit.
    while not is_stopping() and database.read(
        lambda reader: reader.execute(found, (before,)).fetchone()
    ):
        removed += database.write(lambda writer: writer.execute(statement, (before,)).rowcount)
    return removed
