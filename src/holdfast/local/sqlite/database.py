"""The file: its schema, its one writer at a time, and the meaning of SQLite's errors.

**A change is on the disk before its effect has a result.** The file is in WAL mode with
`synchronous=FULL`: each commit waits until the operating system has written SQLite's log file to
the disk. So an answered change is not lost when the process ends or the power fails. One such wait
takes 1 to 5 ms, about 100 times as long as the work of a small change.

**Therefore changes share commits.** A thread adds its change to a list and waits for the lock of
the writer. The thread that gets the lock runs every listed change in one transaction and commits.
The other threads then find their results. With one thread each change has its own transaction; with
thirty, about thirty changes share one wait for the disk.

    thread A   add ─ lock ─ BEGIN a COMMIT ─ unlock
    thread B        add ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ lock ─ BEGIN b c d COMMIT ─ unlock
    thread C          add ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ lock: done
    thread D            add ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ lock: done

Rules of this file:
* A refused change raises before its first write, so that the other changes of the transaction are
  committed.
* An error of SQLite rolls the whole transaction back, and every change in it gets the error.
* Reads have connections of their own. In WAL mode they can read while a commit waits for the disk.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar

from holdfast.errors import RequestError, ServiceFault
from holdfast.runtime.effects import Doubt
from holdfast.runtime.storage.items import refused

Result = TypeVar("Result")
#: A function that runs inside a transaction. It may raise ServiceFault only before its first write,
#: because other changes share the transaction, which is then committed.
Work: TypeAlias = Callable[[sqlite3.Connection], Result]

#: The application id "Hold" in the header of the file. It says that the file belongs to Holdfast.
APPLICATION_ID: Final = 0x486F6C64
SCHEMA_VERSION: Final = 1
#: How long a write waits for the lock. Another process may hold it while it copies a large log into
#: the file (a checkpoint).
BUSY_SECONDS: Final = 10
#: SQLite's log file is cut to this size after a checkpoint.
LOG_BYTES_KEPT: Final = 64_000_000

_SCHEMA: Final = """
CREATE TABLE executions (
    pk TEXT NOT NULL, sk INTEGER NOT NULL, lp TEXT, ls TEXT, ttl INTEGER,
    attributes TEXT NOT NULL, data BLOB, UNIQUE (pk, sk)
);
CREATE INDEX executions_list ON executions (lp, ls) WHERE lp IS NOT NULL AND ls IS NOT NULL;
CREATE INDEX executions_ttl ON executions (ttl) WHERE ttl IS NOT NULL;
CREATE TABLE mail (
    pk TEXT NOT NULL, sk TEXT NOT NULL, lp TEXT, ls TEXT, ttl INTEGER,
    attributes TEXT NOT NULL, data BLOB, UNIQUE (pk, sk)
);
CREATE INDEX mail_ttl ON mail (ttl) WHERE ttl IS NOT NULL;
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, body TEXT NOT NULL,
    sent_ms INTEGER NOT NULL, visible_ms INTEGER NOT NULL, receives INTEGER NOT NULL DEFAULT 0,
    holder TEXT
);
CREATE INDEX messages_visible ON messages (queue, visible_ms, id);
CREATE INDEX messages_held ON messages (holder) WHERE holder IS NOT NULL;
CREATE TABLE blobs (
    key TEXT PRIMARY KEY, stored_ms INTEGER NOT NULL, data BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX blobs_stored ON blobs (stored_ms);
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""


class Database:
    """One file for all threads of a process. Other processes may have opened the same file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = _opened(path)
        self._writing = threading.Lock()
        self._listed: deque[_Change[Any]] = deque()
        self._readers: deque[sqlite3.Connection] = deque()

    def write(self, work: Work[Result], *, is_conditional: bool = False) -> Result:
        """Return the result of `work`, when it is on the disk.

        `is_conditional`: the caller must know whether the change was stored. So if that is unknown
        after a failed commit, `Doubt` is raised.
        """
        change = _Change(work, is_conditional)
        self._listed.append(change)
        with self._writing:
            if not change.is_done:
                self._commit_listed()
            if not change.is_done:
                # Another thread took this change from the list and was interrupted before it ran
                # the change.
                change.fail(self.path, _interrupted(), is_committing=False)
        return change.outcome()

    def read(self, work: Work[Result]) -> Result:
        try:
            connection = self._reader()
            try:
                return work(connection)
            finally:
                self._readers.append(connection)
        except sqlite3.Error as error:
            raise _fault(self.path, error) from None

    def setting(self, name: str, initial: bytes) -> bytes:
        """Return the value of a setting. If the setting is new, `initial` is stored."""

        def stored(connection: sqlite3.Connection) -> bytes:
            connection.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, initial))
            found = connection.execute("SELECT value FROM settings WHERE name = ?", (name,))
            return bytes(found.fetchone()[0])

        return self.write(stored)

    def close(self) -> None:
        """Close the file. The last process that does so writes SQLite's log into it."""
        with self._writing:
            while self._readers:
                self._readers.pop().close()
            self._writer.close()

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._readers.pop()
        except IndexError:
            return _connected(self.path)

    def _commit_listed(self) -> None:
        changes: list[_Change[Any]] = []
        while self._listed:
            changes.append(self._listed.popleft())
        is_committing = False
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for change in changes:
                change.run(self._writer)
            is_committing = True
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            for change in changes:
                change.fail(self.path, error, is_committing=is_committing)
        except BaseException:
            # The thread was interrupted, for example by Ctrl-C. Roll back, so that the next change
            # does not run in this transaction. Mark these changes as failed, so that no thread
            # counts its change as stored.
            self._roll_back()
            for change in changes:
                change.fail(self.path, _interrupted(), is_committing=is_committing)
            raise

    def _roll_back(self) -> None:
        # After some errors SQLite has ended the transaction itself, and a second rollback would
        # fail.
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")


class _Change(Generic[Result]):
    def __init__(self, work: Work[Result], is_conditional: bool) -> None:
        self._work = work
        self._is_conditional = is_conditional
        self._result: Result | None = None
        self._error: Exception | None = None
        self.is_done = False

    def run(self, connection: sqlite3.Connection) -> None:
        self.is_done = True
        try:
            self._result = self._work(connection)
        except sqlite3.Error:
            raise
        except (UnicodeEncodeError, OverflowError) as error:
            self._error = refused(type(error).__name__)
        except Exception as error:  # noqa: BLE001  # raised by `outcome`, in the thread that asked
            self._error = error

    def fail(self, path: Path, error: sqlite3.Error, *, is_committing: bool) -> None:
        self.is_done = True
        fault = _fault(path, error)
        is_known = not is_committing or _code(error) in _NOT_STORED
        is_in_doubt = self._is_conditional and not is_known
        self._error = Doubt(fault.message) if is_in_doubt else fault

    def outcome(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # `run` has set it


def _interrupted() -> sqlite3.Error:
    error = sqlite3.OperationalError("interrupted")
    error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT
    return error


#: With one of these errors the commit is certainly not stored. SQLite did not write the last page,
#: which makes the commit valid, to its log.
_NOT_STORED: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY})


def _fault(path: Path, error: sqlite3.Error) -> ServiceFault:
    """Return the error to raise. Its message has the file and SQLite's reason, never a value."""
    if _code(error) == sqlite3.SQLITE_FULL:
        return ServiceFault("HF284", f"the disk of {path} is full: make room", retry="later")
    return ServiceFault("HF285", f"{path} cannot be used: {error}", retry="later")


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code. Errors of Python's module, such as a closed file, have
    none.
    """
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF


# -- opening ---------------------------------------------------------------------------------------


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")
    return connection


def _opened(path: Path) -> sqlite3.Connection:
    """Open the file. Raises RequestError HF283 when it cannot be the storage of a stack."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _keep_private(path)
        connection = _connected(path)
        connection.execute("PRAGMA journal_mode = WAL")
        _prepare(connection)
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, str(error)) from None
    except _WrongFileError as error:
        connection.close()
        raise _unusable(path, str(error)) from None
    return connection


def _keep_private(path: Path) -> None:
    """Make a new file readable only by its owner: it contains the data of executions and the
    signing key.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


class _WrongFileError(Exception):
    """The file is a database of another program, or of a newer release."""


def _prepare(connection: sqlite3.Connection) -> None:
    """Create the schema. Only the first of several processes does so."""
    connection.execute("BEGIN IMMEDIATE")
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner == 0 and tables == 0:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    elif owner != APPLICATION_ID:
        raise _WrongFileError("it is a database of another program")
    elif version != SCHEMA_VERSION:
        raise _WrongFileError(f"it has version {version}; this code knows {SCHEMA_VERSION}")
    connection.execute("COMMIT")
    # Write once now. If the file cannot be written, the command fails at its start and not at the
    # first request.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT OR REPLACE INTO settings VALUES ('opened', x'')")
    connection.execute("COMMIT")


def _unusable(path: Path, found: str) -> RequestError:
    return RequestError(
        "HF283",
        f"{path} cannot keep the executions: {found}",
        help="name a file that `serve` may write and make, with --data PATH",
    )
