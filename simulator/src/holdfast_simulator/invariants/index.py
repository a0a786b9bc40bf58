"""I23: the index shows each wait, and the attributes that the log has.

The waits of an execution are read off its frames, and its attributes are folded from its events.
The index is read as stored: entries of records, rows of waits, value rows and rows of changes. Only
waits for events and for people are compared: other waits may end while the schedule ends.

Open executions are compared before the schedule stops them, ended ones at the end of the schedule.
An execution that has moved within the patience of I17 is left out, and so is an ended one that the
sweeper has still to check: their rows may be on their way.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.state import Awaiting
from holdfast.runtime.effects import Item, TableName
from holdfast.runtime.search_rows import encoded
from holdfast.runtime.storage import tables
from holdfast.runtime.wait_text import TEXT_BYTES_MAX
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.invariants.dues import stuck_ms_max
from holdfast_simulator.services import Services


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of the index by (tenant, run)."""

    waits: Mapping[tuple[str, str], Item]
    values: Mapping[tuple[str, str], list[Item]]
    changes: Mapping[tuple[str, str], Item]


def agrees(case: Case) -> Iterator[str]:
    yield from case.schedule.unindexed
    rows, watched = _rows(case.services), _watched(case.services)
    for history in case.histories:
        if history.state.is_ended and (history.tenant, history.run) not in watched:
            row = rows.waits.get((history.tenant, history.run))
            if row is not None and "wt" in row:
                yield f"{history.run} has ended, and the index shows a wait: {row['wt']!r}"
            yield from _attributes(history, rows)


def of_open(evidence: Evidence, history: StoredHistory, now_ms: int) -> Iterator[str]:
    """Yield the violations of an execution that rests."""
    moved_ms = max(history.records[-1].at_ms, evidence.faults_end_ms)
    if not history.state.is_opened or moved_ms + stuck_ms_max(evidence, history.run) > now_ms:
        return
    rows = _rows(evidence.services)
    yield from _waits(history, rows)
    yield from _attributes(history, rows)


def _stored(services: Services, table: TableName) -> list[Item]:
    """Return the items that TTL has not deleted. Of one key the stored item is the newest."""
    found: dict[tuple[str, Any], Item] = {}
    for item in services.items(table):
        place: Any = item["pk"], item["sk"]
        known = found.get(place)
        if services.has(table, *place) and _sequence(known) <= _sequence(item):
            found[place] = item
    return list(found.values())


def _sequence(item: Item | None) -> int:
    return -1 if item is None else int(item.get("seq", 0))


def _watched(services: Services) -> frozenset[tuple[str, str]]:
    """Return the executions that have a watchdog row."""
    items = _stored(services, tables.MAIL)
    rows = (item for item in items if str(item["pk"]).startswith("~due#") and "run" in item)
    return frozenset((str(row["t"]), str(row["run"])) for row in rows if "entry" not in row)


def _rows(services: Services) -> _Rows:
    found = _Rows({}, defaultdict(list), {})
    waits: Any = found.waits
    changes: Any = found.changes
    for item in _stored(services, tables.MAIL):
        tenant, _, rest = str(item["pk"]).partition("#")
        run = str(item["sk"]).rpartition("#")[2]
        if "#waits#" in f"#{rest}":
            waits[tenant, run] = item
        elif rest.startswith("at#"):
            found.values[tenant, run].append(item)
        elif rest.startswith("atn#"):
            changes[tenant, rest.removeprefix("atn#")] = item
    return found


def _waits(history: StoredHistory, rows: _Rows) -> Iterator[str]:
    row = rows.waits.get((history.tenant, history.run))
    opened_at = history.state.opened_at
    entry = next(item for item in history.items if item["sk"] == opened_at)
    if "lp" not in entry:
        yield f"{history.run} rests, and has no entry in the list"
        return
    is_later = row is not None and int(row["seq"]) > int(entry["sk"])
    text = str((row if is_later and row is not None else entry).get("wt", "[]"))
    shown = {(kind, target) for kind, target, *_ in json.loads(text) if kind in {"event", "ask"}}
    wanted = set(_subjects(history))
    is_whole = len(text) < TEXT_BYTES_MAX // 2
    if shown - wanted or (is_whole and wanted - shown):
        yield f"{history.run} waits for {sorted(wanted)}, and the index shows {sorted(shown)}"


def _subjects(history: StoredHistory) -> Iterator[tuple[str, str]]:
    for frame in history.state.frames.values():
        match frame.waiting:
            case Awaiting(kind="event") as waiting:
                yield "event", waiting.event_name
            case Awaiting(kind="ask") as waiting:
                yield "ask", str(waiting.text("assignee"))
            case _:
                pass


def _attributes(history: StoredHistory, rows: _Rows) -> Iterator[str]:
    place = history.tenant, history.run
    wanted = [[name, *typed] for name, typed in sorted(_folded(history).items())]
    changed = rows.changes.get(place)
    found = []
    for row in rows.values.get(place, []):
        present = json.loads(str(row["values"] if changed is None else changed["values"]))
        name = str(row["pk"]).split("#")[2]
        value = present.get(name)
        if value is not None and str(row["sk"]).startswith(f"{encoded(*value)}#"):
            found.append([name, *value])
    if sorted(found) != wanted:
        yield f"{history.run} has the attributes {wanted}, and is found by {sorted(found)}"


def _folded(history: StoredHistory) -> dict[str, list[Any]]:
    """Return the attributes that the events set, in their order."""
    found: dict[str, list[Any]] = {}
    for event in history.events:
        if event.type == "Noted":
            own = event.holdfast
            found.pop(own["name"], None)
            if own["value"] is not None:
                found[own["name"]] = [own["kind"], own["value"]]
    return found
