"""Large values, by key. A key ends in the hash of the bytes, so a put may be repeated."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.errors import GONE, ServiceFault
from holdfast.local.sqlite.database import Database
from holdfast.runtime.effects import GetBlob, PutBlob


class SqliteBlobs:
    def __init__(self, database: Database, clock: Callable[[], int]) -> None:
        self._database = database
        self._clock = clock

    def put(self, effect: PutBlob) -> None:
        row = (effect.key, self._clock(), effect.data)
        statement = "INSERT OR REPLACE INTO blobs VALUES (?, ?, ?)"
        self._database.write(lambda writer: writer.execute(statement, row))

    def get(self, effect: GetBlob) -> bytes:
        statement = "SELECT data FROM blobs WHERE key = ?"
        found = self._database.read(
            lambda reader: reader.execute(statement, (effect.key,)).fetchone()
        )
        if found is None:
            raise ServiceFault(GONE, f"{self._database.path}: no blob {effect.key}", retry="never")
        return bytes(found[0])
