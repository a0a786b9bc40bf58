"""An execution that TTL has deleted, read from the archive of the stack."""

from __future__ import annotations

import gzip
from collections.abc import Generator, Iterator
from itertools import groupby
from typing import Any, TypeAlias

from holdfast.core.run_ids import run_of_uuid
from holdfast.runtime.commands.export_line import read_line
from holdfast.runtime.commands.presentation import EventPlace
from holdfast.runtime.effects import Archived, Effect, GetArchive
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.codec import reading

_Event: TypeAlias = dict[str, Any]


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
    history = yield from _whole(tenant, str(shown["execution"]), history)
    return str(shown["execution"]), [one for one in _placed(history) if one[0] > after]


def _whole(tenant: str, run: str, history: list[_Event]) -> Generator[Effect, Any, list[_Event]]:
    """Return the history with the events before it. When an execution is retried months after its
    end, TTL deletes the earlier records before its next end is archived. The object of the earlier
    end has those records.
    """
    while history and (first := int(history[0]["record"])) > 0:
        until = keys.archive_key(tenant, run, first - 1)
        earlier = yield GetArchive(keys.archive_prefix(tenant, run), until)
        before = [] if earlier is None else _read(earlier)[1]
        if not before:
            return history
        history = [*before, *history]
    return history


def _find(tenant: str, identifier: str) -> Generator[Effect, Any, Archived | None]:
    """Find the newest object. The name of an execution is gone before its log, so only an id, or
    the name that holds one, leads to the archive.
    """
    run = identifier if keys.is_run(identifier) else run_of_uuid(identifier)
    if run is None:
        return None
    found: Archived | None = yield GetArchive(keys.archive_prefix(tenant, run))
    return found


def _read(found: Archived) -> tuple[dict[str, Any], list[_Event]]:
    with reading(f"the archived execution {found.place}"):
        return read_line(gzip.decompress(found.data).decode())


def _placed(history: list[_Event]) -> Iterator[tuple[EventPlace, dict[str, Any]]]:
    for sequence, of_record in groupby(history, key=lambda event: int(event["record"])):
        for number, event in enumerate(of_record):
            yield (sequence, number), event
