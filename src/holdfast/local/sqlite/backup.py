"""Copies the file while processes write to it.

A plain copy of the file would lack the newest changes, which are in SQLite's log file. Copying both
files one after the other could mix two states. SQLite's own backup copies one state.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from holdfast.errors import RequestError
from holdfast.local.sqlite.database import APPLICATION_ID

#: Copy all pages in one step. SQLite restarts a backup when a process writes between two steps, so
#: a backup in several steps would never end during a busy `serve`. In WAL mode the long read does
#: not block the writers.
PAGES: Final = -1


def back_up(source: Path, target: Path) -> int:
    """Copy the file. Return the size of the copy in bytes. Raises RequestError HF283. `target` must
    not exist.
    """
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise _impossible(f"{target}: {error.strerror}") from None
    try:
        _copy(source, target)
    except BaseException as error:
        # Remove an incomplete copy, also after Ctrl-C, because it must not look like a complete
        # one.
        target.unlink()
        if not isinstance(error, sqlite3.Error):
            raise
        reason = error if source.exists() else "there is no such file"
        raise _impossible(f"{source}: {reason}") from None
    return target.stat().st_size


def _copy(source: Path, target: Path) -> None:
    # Open the file with the mode "rw", so that SQLite does not create a missing file.
    original = sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)
    copy = sqlite3.connect(target)
    try:
        if original.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            raise sqlite3.DatabaseError("it is not a file of `holdfast serve`")
        original.backup(copy, pages=PAGES)
    finally:
        copy.close()
        original.close()


def _impossible(found: str) -> RequestError:
    return RequestError(
        "HF283",
        f"nothing was copied: {found}",
        help="name the file of `serve` with --data, and a new file for the copy",
    )
