"""Finds out which processes of a file are alive, so that the messages of a killed one become
visible at once.

Each process holds a lock on a small file next to the database. The operating system releases the
lock when the process ends, in whatever way. Another process that gets the lock knows that the
holder has ended. Process ids could not be used: they are reused, and they differ between
containers.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

NAME_BYTES: Final = 6
_SUFFIX: Final = ".process"


class Presence:
    """This process, with a unique `name`, until `leave` or until the process ends."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.name = os.urandom(NAME_BYTES).hex()
        self._file = self._locked()
        for left in database.parent.glob(f"{database.name}-*{_SUFFIX}"):
            self.is_gone(left.name.removeprefix(f"{database.name}-").removesuffix(_SUFFIX))

    def _locked(self) -> int:
        """Create and lock the file. If another process removes the file before it is locked, create
        it again.
        """
        path = self._path(self.name)
        while True:
            opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(opened, fcntl.LOCK_EX)
            if path.exists():
                return opened
            os.close(opened)

    def is_gone(self, name: str) -> bool:
        """Return True for a process that has ended. Its file is then removed."""
        if name == self.name:
            return False
        try:
            found = os.open(self._path(name), os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            self._path(name).unlink(missing_ok=True)
            return True
        finally:
            os.close(found)

    def leave(self) -> None:
        self._path(self.name).unlink(missing_ok=True)
        os.close(self._file)

    def _path(self, name: str) -> Path:
        return self._database.with_name(f"{self._database.name}-{name}{_SUFFIX}")
