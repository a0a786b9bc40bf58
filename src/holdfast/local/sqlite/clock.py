"""The clock of a file. The file stores by how much its clock is ahead of the machine's.

Without that, a later `serve` would read times of the future in its log, and its timers would not
fire until the machine's clock has reached them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final

from holdfast.local.clock import LeadClock
from holdfast.local.sqlite.database import Database

_LEAD: Final = "clock_lead_ms"


class FileClock(LeadClock):
    """A clock that may be ahead of the machine's. A call returns ms since 1970."""

    def __init__(self, database: Database, machine: Callable[[], int]) -> None:
        super().__init__(machine)
        self._database = database
        self.lead_ms = int(database.setting(_LEAD, b"0"))

    def advance(self, milliseconds: int) -> None:
        def advance(writer: sqlite3.Connection) -> None:
            writer.execute(
                "UPDATE settings SET value = CAST(CAST(value AS TEXT) + ? AS BLOB) WHERE name = ?",
                (milliseconds, _LEAD),
            )

        self._database.write(advance)
        self.read_lead()

    def read_lead(self) -> None:
        """Read again by how much the clock is ahead: another process may have changed it."""
        statement = "SELECT value FROM settings WHERE name = ?"
        found = self._database.read(lambda reader: reader.execute(statement, (_LEAD,)).fetchone())
        self.lead_ms = int(found[0])
