"""I24: TTL may delete a record only after the archive has an object that contains it.

The times are those of the effects, not of the worker's clock. An object is read with the format
that docs/how-to/export.md describes, not with the code of the product.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

from holdfast.runtime.storage import keys
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case


def kept(case: Case) -> Iterator[str]:
    if case.schedule.swarm.archives:
        for history in case.histories:
            yield from _without_object(case, history)
            yield from _objects(case, history)


def _key(history: StoredHistory, sequence: int) -> str:
    return keys.archive_key(history.tenant, history.run, sequence)


def _without_object(case: Case, history: StoredHistory) -> Iterator[str]:
    """Yield the records that TTL may delete too early, or never. An exception to the latter: a
    worker that crashed between the end and its follow-ups, and whose message then vanished, leaves
    no row that leads to the execution. Its records stay.
    """
    seen, is_lost = case.schedule.archive, history.run in case.schedule.lost
    for record in history.records:
        what = f"{history.run}: record {record.sequence}"
        place = keys.execution(history.tenant, history.run), record.sequence
        expiring_ms = seen.expiring_ms.get(place)
        later = (_key(history, one.sequence) for one in history.records[record.sequence :])
        put_ms = min((seen.put_ms[key] for key in later if key in seen.put_ms), default=None)
        if expiring_ms is None:
            if history.state.is_ended and not (is_lost or case.schedule.is_endless):
                yield f"{what} of an ended execution is kept for ever"
        elif put_ms is None or put_ms > expiring_ms:
            yield f"{what} may be deleted from {expiring_ms} on, and was archived at {put_ms}"


def _objects(case: Case, history: StoredHistory) -> Iterator[str]:
    """Yield the objects that are not the whole history up to their record."""
    events: list[str] = []
    for record, state in zip(history.records, history.states, strict=True):
        events += [event.type for event in record.events]
        stored = case.services.archive.get(_key(history, record.sequence))
        if stored is None:
            continue
        line: Any = json.loads(gzip.decompress(stored))
        found = [event["type"] for event in json.loads(line["history"])]
        if (line["execution"], line["status"], found) != (history.run, state.status, events):
            what = f"{len(found)} events of {line['execution']}, {line['status']}"
            wanted = f"{len(events)} events of {history.run}, {state.status}"
            yield f"the object for record {record.sequence} has {what}; the log has {wanted}"
