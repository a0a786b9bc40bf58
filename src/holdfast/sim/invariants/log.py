"""I1, I2, I3, I14: what is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from holdfast.core.apply import fold
from holdfast.core.events import TERMINAL_EVENTS
from holdfast.core.state import Execution
from holdfast.core.state_json import to_json
from holdfast.cost import item_bytes
from holdfast.limits import DYNAMODB_ITEM_BYTES_MAX
from holdfast.runtime.codec import Reader, Record
from holdfast.sim.histories import History, by_digest
from holdfast.sim.invariants.case import Case


def one_writer(case: Case) -> Iterator[str]:
    for history in case.histories:
        numbers = [record.sequence for record in history.records]
        if numbers != list(range(len(numbers))):
            yield f"{history.run}: records {numbers} are not dense"
    if case.evidence is not None:
        written = Counter((one.tenant, one.run, one.sequence) for one in case.evidence.wrote)
        for where, times in written.items():
            if times > 1:
                yield f"record {where} was written {times} times"


def legal(case: Case) -> Iterator[str]:
    for history in case.histories:
        yield from _dense(history)
        yield from _one_end(history)


def _dense(history: History) -> Iterator[str]:
    ids = [event.id for event in history.events if event.id]
    if ids != list(range(1, len(ids) + 1)):
        yield f"{history.run}: event ids are not dense"
    if any(event.previous >= event.id for event in history.events if event.id):
        yield f"{history.run}: an event precedes its own predecessor"


def _one_end(history: History) -> Iterator[str]:
    has_ended = False
    for event in history.events:
        if has_ended and event.type != "ExecutionRedriven":
            yield f"{history.run}: {event.type} follows the end of the history"
            return
        has_ended = event.type in TERMINAL_EVENTS


def replays(case: Case) -> Iterator[str]:
    blobs = by_digest(case.services)
    for history in case.histories:
        folded: Execution | None = None
        for item, record in zip(history.items, history.records, strict=True):
            state = folded = _folded(record, folded)
            if str(item["st"]) != state.status:
                yield f"{history.run}: record {record.sequence} says {item['st']!r}"
            if "so" in item:
                reader = Reader(blobs)
                reader.from_snapshot(item)
                assert reader.state is not None
                if to_json(reader.state) != to_json(state):
                    yield f"{history.run}: the snapshot of record {record.sequence} is not the fold"


def _folded(record: Record, before: Execution | None) -> Execution:
    state = fold(record.events, before)
    assert state is not None
    return state


def limits(case: Case) -> Iterator[str]:
    for table in ("executions", "mail"):
        for item in case.services.items(table):
            size = item_bytes(item)
            if size > DYNAMODB_ITEM_BYTES_MAX:
                yield f"{item['pk']!r} {item['sk']!r}: an item of {size} bytes"
            if table == "executions" and "ev" not in item and "eb" not in item:
                yield f"{item['pk']!r}: a record without events"
