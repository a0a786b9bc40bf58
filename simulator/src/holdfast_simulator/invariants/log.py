"""I1, I2, I3, I14: the written records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from holdfast.core.apply.apply import fold
from holdfast.core.events import TERMINAL_EVENTS
from holdfast.core.state import Execution
from holdfast.core.state_json import from_json, to_json
from holdfast.cost import item_bytes
from holdfast.limits import CAUSE_CHARACTERS_MAX, DYNAMODB_ITEM_BYTES_MAX, ERROR_CHARACTERS_MAX
from holdfast.runtime.effects import Item
from holdfast.runtime.storage import tables
from holdfast.runtime.storage.codec import Reader
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory, by_digest
from holdfast_simulator.invariants import transitions
from holdfast_simulator.invariants.case import Case

#: The state is written and read after this many records; after each it would make the schedules 5 %
#: slower.
_WRITTEN_EACH: Final = 3
#: The attributes of items that hold users' data; no other attribute may hold any.
_PAYLOADS: Final = frozenset({"ev", "ss", "v", "doc", "error", "cause"})


# -- I1 --------------------------------------------------------------------------------------------


def one_writer(case: Case) -> Iterator[str]:
    for history in case.histories:
        numbers = [record.sequence for record in history.records]
        if numbers != list(range(len(numbers))):
            yield f"{history.run}: records {numbers} are not dense"
    if case.evidence is not None:
        yield from written_in_order(case.evidence)
        yield from _stands_as_written(case)
        yield from _dated(case)


def written_in_order(evidence: Evidence) -> Iterator[str]:
    following: Counter[tuple[str, str]] = Counter()
    for one in evidence.wrote:
        log = (one.tenant, one.run)
        if one.sequence != following[log]:
            yield f"record {one.sequence} of {one.run} was written after {following[log] - 1}"
        following[log] = one.sequence + 1


def _stands_as_written(case: Case) -> Iterator[str]:
    nonces = {(one.run, one.sequence): one.nonce for one in case.schedule.wrote}
    for history in case.histories:
        for record in history.records:
            if nonces.get((history.run, record.sequence)) != record.nonce:
                yield f"record {record.sequence} of {history.run} is not the one that was written"


def _dated(case: Case) -> Iterator[str]:
    """Check that no event is dated after its record was written. Decisions of a start have the time
    of its caller, whose clock is unknown.
    """
    wrote = {(one.run, one.sequence): one for one in case.schedule.wrote}
    for history in case.histories:
        for record in history.records:
            found = wrote.get((history.run, record.sequence))
            if found is None:
                continue
            off_ms = found.skew_ms if record.sequence else case.schedule.swarm.skew_ms
            for event in record.events:
                if event.at_ms - off_ms > found.at_ms:
                    yield (
                        f"{history.run}: {event.type} says {event.at_ms}, and was written at"
                        f" {found.at_ms}"
                    )


# -- I2 --------------------------------------------------------------------------------------------


def legal(case: Case) -> Iterator[str]:
    for history in case.histories:
        yield from _dense(history)
        yield from _one_end(history)
        yield from transitions.illegal(history)
        yield from transitions.unsettled(history)


def _dense(history: StoredHistory) -> Iterator[str]:
    ids = [event.id for event in history.events if event.id]
    if ids != list(range(1, len(ids) + 1)):
        yield f"{history.run}: event ids are not dense"
    if any(event.previous >= event.id for event in history.events if event.id):
        yield f"{history.run}: an event precedes its own predecessor"


def _one_end(history: StoredHistory) -> Iterator[str]:
    has_ended = False
    for event in history.events:
        if has_ended and event.type != "ExecutionRedriven":
            yield f"{history.run}: {event.type} follows the end of the history"
            return
        has_ended = event.type in TERMINAL_EVENTS


# -- I3 --------------------------------------------------------------------------------------------


def replays(case: Case) -> Iterator[str]:
    blobs = by_digest(case.services)
    for history in case.histories:
        yield from _same_through_json(history)
        for item, state in zip(history.items, history.states, strict=True):
            what = f"{history.run}: record {item['sk']!r}"
            if str(item["st"]) != state.status:
                yield f"{what} says {item['st']!r}"
            if "so" in item:
                reader = Reader(blobs)
                reader.from_snapshot(item)
                if reader.state != state:
                    yield f"{what} has a snapshot that is not the fold"


def _same_through_json(history: StoredHistory) -> Iterator[str]:
    """Apply the events again, from a state that is written as JSON and read at intervals, and
    compare.
    """
    stored: Execution | None = None
    for record, state in zip(history.records, history.states, strict=True):
        again = fold(record.events, stored)
        assert again is not None
        what = f"{history.run}: record {record.sequence}"
        if again != state:
            yield f"{what} folds to another state the second time"
        stored = again
        if record.sequence % _WRITTEN_EACH == 0:
            stored = from_json(json.loads(json.dumps(to_json(again))))
        if stored != again:
            yield f"{what}: its state is another one once it was written and read"


# -- I14 -------------------------------------------------------------------------------------------


def limits(case: Case) -> Iterator[str]:
    for table in (tables.EXECUTIONS, tables.MAIL):
        for item in case.services.items(table):
            size = item_bytes(item)
            if size > DYNAMODB_ITEM_BYTES_MAX:
                yield f"{item['pk']!r} {item['sk']!r}: an item of {size} bytes"
            if table == tables.EXECUTIONS and "ev" not in item and "eb" not in item:
                yield f"{item['pk']!r}: a record without events"
            if case.evidence is not None:
                yield from _leaks(item, case.evidence.dispatches.canaries)
    for history in case.histories:
        for event in history.events:
            yield from _texts_in_bounds(history, event.details)
    if case.evidence is not None:
        yield from case.evidence.unusable
        yield from case.evidence.dispatches.leaked


def _texts_in_bounds(history: StoredHistory, details: Any) -> Iterator[str]:
    bounds = {"error": ERROR_CHARACTERS_MAX, "cause": CAUSE_CHARACTERS_MAX}
    for name, characters_max in bounds.items():
        text = details.get(name)
        if isinstance(text, str) and len(text) > characters_max:
            yield f"{history.run}: a text of {len(text)} characters as {name}"


def _leaks(item: Item, canaries: tuple[str, ...]) -> Iterator[str]:
    """Yield each attribute outside of the payloads that contains a user's data."""
    for canary in canaries:
        for name, value in item.items():
            if name not in _PAYLOADS and canary in str(value):
                yield f"{item['sk']!r}: attribute {name} tells {canary}"
