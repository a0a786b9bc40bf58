"""An execution that TTL has deleted, read from the archive of the stack."""

from __future__ import annotations

import gzip
from collections.abc import Generator, Iterator
from itertools import groupby
from typing import Any

from holdfast.core.run_ids import run_of_uuid
from holdfast.runtime.commands.export_line import read_line
from holdfast.runtime.commands.presentation import EventPlace
from holdfast.runtime.effects import Archived, Effect, GetArchive
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.codec import reading


def describe(tenant: str, identifier: str) -> Generator[Effect, Any, dict[str, Any] | None]:
    """Return the description, None when the archive has no such execution. `archived` is the place
    of the object.
    """
    found = yield from _find(tenant, identifier)
    if found is None:
        return None
    shown, _ = _read(found)
    return {**shown, "waits": [], "archived": found.place}


def events(
    tenant: str, identifier: str, after: EventPlace
) -> Generator[Effect, Any, tuple[str, list[tuple[EventPlace, dict[str, Any]]]] | None]:
    """Return the id of the execution and its events after that place."""
    found = yield from _find(tenant, identifier)
    if found is None:
        return None
    shown, history = _read(found)
    return str(shown["execution"]), [one for one in _placed(history) if one[0] > after]


def _find(tenant: str, identifier: str) -> Generator[Effect, Any, Archived | None]:
    """Find the newest object. The name of an execution is gone before its log, so only an id, or
    the name that holds one, leads to the archive.
    """
    run = identifier if keys.is_run(identifier) else run_of_uuid(identifier)
    if run is None:
        return None
    found: Archived | None = yield GetArchive(keys.archive_prefix(tenant, run))
    return found


def _read(found: Archived) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with reading(f"the archived execution {found.place}"):
        return read_line(gzip.decompress(found.data).decode())


def _placed(history: list[dict[str, Any]]) -> Iterator[tuple[EventPlace, dict[str, Any]]]:
    for sequence, of_record in groupby(history, key=lambda event: int(event["record"])):
        for number, event in enumerate(of_record):
            yield (sequence, number), event
