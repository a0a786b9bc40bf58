"""I17 for the inbox: a message for an open wait, or a stop, is read in time."""

from __future__ import annotations

import json
from collections.abc import Iterator

from holdfast.core.state import Awaiting, ChildExecutions, Execution
from holdfast.runtime import children, inbox
from holdfast.runtime.effects import Item, Query
from holdfast.runtime.storage import keys, tables
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.event_claims import is_too_old, usable_since_ms


def unheard(evidence: Evidence, history: StoredHistory, before_ms: int) -> Iterator[str]:
    """Yield unread inbox messages of an open execution that are older than that."""
    tenant, state = history.tenant, history.state
    partition = keys.inbox(tenant, history.run)
    for item in _old(evidence, partition, keys.CONTROL_PREFIX, before_ms):
        key = str(item["sk"])
        # An open execution has no end that a redrive could continue
        is_for_an_end = item.get("kind") == inbox.REDRIVE
        is_void = is_for_an_end or (_is_obeyed(state) and "now" not in item)
        is_void |= item.get("kind") == inbox.RESUME and state.paused is None
        is_void |= item.get("kind") == inbox.PAUSE and state.paused is not None
        is_void |= item.get("kind") == inbox.SKIP and not _is_open(state, item)
        is_void |= item.get("kind") == inbox.MIGRATE and not _is_where_it_was(state, item)
        if key.removeprefix(keys.CONTROL_PREFIX) > state.last_control and not is_void:
            yield f"{history.run}: no execution has read {key}"
    for frame in state.frames.values():
        wait = frame.waiting
        if isinstance(wait, ChildExecutions):
            for item in _old(
                evidence, partition, f"{children.NOTICE_PREFIX}{wait.entry}#", before_ms
            ):
                notice = str(item["sk"])
                lane, redrives = children.place_of_notice(notice)
                # A notice of another redrive is about an end that the redrive has looked at.
                if lane in wait.open_lanes and redrives == wait.redrives:
                    yield f"{history.run}: the notice {notice} was not read"
        if not isinstance(wait, Awaiting):
            continue
        taken, answer = (key(wait.entry, wait.attempt) for key in (keys.taken, keys.answer))
        for item in _old(evidence, partition, taken, before_ms):
            is_its = item["sk"] == taken and not wait.is_begun
            if is_its and _shown_ms(evidence, history, wait) < before_ms:
                yield f"{history.run}: the execution has not read that a worker has taken {taken}"
        partition = keys.event(tenant, wait.event_name, wait.event_key)
        for item in _old(evidence, partition, answer, before_ms):
            # The message may be older than the record of its wait, which has only just begun.
            if item["sk"] == answer and _shown_ms(evidence, history, wait) < before_ms:
                yield f"{history.run}: the answer {answer} was not read"
        for item in _old(evidence, partition, keys.EVENT_PREFIX, before_ms):
            event_id = str(item["sk"]).removeprefix(keys.EVENT_PREFIX)
            is_open = event_id not in state.used_events and int(item["expires"]) > before_ms
            # The event may be much older than its wait, which has only just begun.
            is_open &= not is_too_old(wait.arguments, state.started_ms, item)
            if wait.kind == "event" and is_open and wait.since_ms < before_ms:
                since_ms = usable_since_ms(evidence, tenant, history.run, item)
                if since_ms is not None and since_ms < before_ms:
                    yield f"{history.run}: the event {event_id} was not read"


def _is_open(state: Execution, skip: Item) -> bool:
    """Return True when the visit that the skip names has not ended."""
    frame = state.frames.get(str(skip["frame"]))
    return frame is not None and frame.entered_event == skip["entered"]


def _is_where_it_was(state: Execution, migration: Item) -> bool:
    """Return True when no visit has ended since the migration was proven."""
    if "v" not in migration:
        return False  # The move is in a blob and is not read here
    move = json.loads(str(migration["v"]))
    visits = {frame.id: frame.entered_event for frame in state.frames.values()}
    return bool(move["from"] == state.definition and move["visits"] == visits)


def _shown_ms(evidence: Evidence, history: StoredHistory, wait: Awaiting) -> int:
    """Return the time of the first record with this wait."""
    place = (wait.entry, wait.attempt)
    first = next(
        record.sequence
        for record, state in zip(history.records, history.states, strict=True)
        for one in (frame.waiting for frame in state.frames.values())
        if isinstance(one, Awaiting) and (one.entry, one.attempt) == place
    )
    record_of = (history.tenant, history.run, first)
    wrote = (one for one in evidence.wrote if (one.tenant, one.run, one.sequence) == record_of)
    return min((one.at_ms for one in wrote), default=0)


def _is_obeyed(state: Execution) -> bool:
    """Return True when a stop has been applied: a second stop during the undo adds nothing."""
    told = state.stopping
    return told is not None and told["status"] == "ABORTED" and "by_parent" not in told


def _old(evidence: Evidence, partition: str, prefix: str, before_ms: int) -> list[Item]:
    items = evidence.services.perform(Query(tables.MAIL, partition, begins_with=prefix))
    return [
        item
        for item in items
        if evidence.stored.get((partition, str(item["sk"])), before_ms) < before_ms
    ]
