"""Executions with their histories as lines of JSON, in a folder or in S3, for Athena and for
replay.

    FOLDER/day=2027-01-15/20270301T080000Z-0001.jsonl        one line for each execution
    s3://BUCKET/PREFIX/day=2027-01-15/20270301T080000Z-0001.jsonl.gz

The day is that of the start. The name begins with the time of the export, so an export never
replaces the file of another one. A query must use the newest line of each execution.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import HoldfastError, RequestError
from holdfast.runtime.commands.export_line import line_of

if TYPE_CHECKING:
    from holdfast.remote.client import Client

#: The most executions and bytes of one file. Athena is fastest with files of tens of megabytes, and
#: a history of a few steps has about ten kilobytes.
_LINES_MAX: Final = 2_000
_BYTES_MAX: Final = 64_000_000
_S3: Final = "s3://"

#: A function that stores bytes under a name.
Store = Callable[[str, bytes], None]
#: A function that is called for an execution that could not be read, with its id and the error.
Unread = Callable[[str, HoldfastError], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """The content of one file. `oldest` is the start of its oldest execution."""

    file: str
    executions: int
    oldest: str


def export(
    client: Client, rows: Iterable[Any], target: str, now: datetime, unread: Unread
) -> Iterator[Exported]:
    """Write the executions of the rows, which are in the order of their starts; yield each file
    when it is stored. `unread` is called for an execution that cannot be read, and the export
    continues. Raises RequestError HF508.
    """
    store, is_packed = _store(target)
    at = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    number = 0
    for day, of_day in groupby(rows, key=lambda row: str(row["started"])[:10]):
        for lines, oldest in _files(of_day, partial(_line, client, now), unread):
            number += 1
            name = f"day={day}/{at}-{number:04d}.jsonl"
            data = ("\n".join(lines) + "\n").encode()
            if is_packed:
                name, data = f"{name}.gz", gzip.compress(data, mtime=0)
            store(name, data)
            yield Exported(name, len(lines), oldest)


def _files(
    rows: Iterable[Any], line_of: Callable[[str], str], unread: Unread
) -> Iterator[tuple[list[str], str]]:
    lines: list[str] = []
    size, oldest = 0, ""
    for row in rows:
        is_full = len(lines) >= _LINES_MAX or size > _BYTES_MAX
        # Executions that started in the same millisecond must be in one file. After a failure the
        # export continues with `--until` and the start of the oldest execution in the last file,
        # and so leaves out that millisecond. Any execution of it that was not in the file would be
        # missing.
        if is_full and row["started"] != oldest:
            yield lines, oldest
            lines, size = [], 0
        oldest = str(row["started"])
        try:
            line = line_of(str(row["execution"]))
        except HoldfastError as error:
            unread(str(row["execution"]), error)
        else:
            lines.append(line)
            size += len(line)
    if lines:
        yield lines, oldest


def _line(client: Client, now: datetime, execution: str) -> str:
    exported = now.astimezone(UTC).isoformat(timespec="seconds")
    return line_of({**client.describe(execution)}, client.history(execution), exported)


# -- the targets of an export ----------------------------------------------------------------------


def _store(target: str) -> tuple[Store, bool]:
    """Return the function that stores a file, and True when files are compressed."""
    if target.startswith(_S3):
        return _bucket(target), True
    folder = Path(target)

    def put(name: str, data: bytes) -> None:
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            raise _not_stored(str(path), error.strerror) from None

    return put, False


def _bucket(target: str) -> Store:
    import boto3  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    bucket, _, prefix = target.removeprefix(_S3).partition("/")
    s3 = boto3.client("s3")

    def put(name: str, data: bytes) -> None:
        key = f"{prefix.rstrip('/')}/{name}".lstrip("/")
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=data)
        except (BotoCoreError, ClientError) as error:
            raise _not_stored(f"{_S3}{bucket}/{key}", error) from None

    return put


def _not_stored(where: str, why: object) -> RequestError:
    return RequestError(
        "HF508",
        f"the export was not stored as {where}: {why}",
        help="--to takes a folder, or s3://BUCKET/PREFIX that your credentials may write to",
    )
