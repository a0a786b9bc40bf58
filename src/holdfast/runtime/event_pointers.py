"""Pointers to unread events, for an execution that receives many.

An event stays stored for 14 days after its use, because another execution may wait for it, and
because its id refuses the same event a second time. Events are sorted by their ids, which the
senders choose. So a wait that looks for unread events would read all events of two weeks, and the
thousandth event would cost a thousand reads.

An execution that has used many events of one name and key therefore asks for pointers: it marks its
registration. From then on, each sender also puts a pointer into the inbox of that execution, sorted
by the time of the event. The execution deletes the pointer after the use of the event.

    sender      put e#X ─ read registrations: marked ─ put the pointer to X ─ send the wake
    execution   read pointers ─ get e#X ─ commit ─ next wait: read pointers, delete that of X

How an execution changes over:

    1. put the registration with the mark        from now on senders put pointers
    2. read all events (R13), and put a pointer for each unread one
    3. store in the registration that step 2 is done, if it still has the mark of step 1

A wait uses pointers only if step 3 is stored. Any put of the registration without the mark, by
older code or by a worker that was frozen, ends the use: the next wait reads all events and begins
at step 1. So does a retry of the execution, and a registration that will soon expire.

A wake names its event. A worker that finds no pointer to that event reads all events: the sender
has read the registration before the mark, or has older code. A recovery, and a wait that is about
to time out, also read all events. So a pointer that is missing causes a delay, and loses no event.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final

from holdfast.core.facts import Fact
from holdfast.core.state import Awaiting, Execution
from holdfast.limits import EVENT_POINTERS_FROM, REGISTRATION_SECONDS_MIN
from holdfast.runtime import inbox, messages
from holdfast.runtime.effects import (
    Condition,
    Delete,
    Effect,
    Get,
    Item,
    Message,
    NoResult,
    Put,
    Query,
    Send,
    Update,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, require_format

#: The attribute of a registration that asks for pointers. Its value names the worker that asked.
ASKED: Final = "pt"
# The attribute that says: every unread event has a pointer.
_COMPLETE: Final = "pc"
# One query reads at most this many pointers. A wait rarely needs more than the first of them.
_POINTERS_READ_MAX: Final = 100


def has_many(state: Execution) -> bool:
    """Return True when the execution may use pointers. Below this number of used events it costs
    less to read all events.
    """
    return len(state.used_events) >= EVENT_POINTERS_FROM


def wake(
    tenant: str, name: str, key: str, event: Item, only: str | None
) -> Generator[Effect, Any, int]:
    """Wake the executions that have registered for the stored event, and return their number.
    `only`: the one that may use it; None: all of them.
    """
    rows = yield Query(tables.MAIL, str(event["pk"]), begins_with=keys.REGISTRATION_PREFIX)
    open_rows = [row for row in rows if inbox.OVER not in row]
    waiting = [row for row in open_rows if only in (None, inbox.registered(row))]
    if waiting:
        yield from put_for(tenant, waiting, event)
        yield from send_wakes(tenant, name, key, event, map(inbox.registered, waiting))
    return len(waiting)


def send_wakes(tenant: str, name: str, key: str, event: Item, runs: Iterable[str]) -> NoResult:
    """Send the executions the wake for the stored event."""
    named = {"id": inbox.event_id(event), "at": int(event["at"]), "name": name, "key": key}
    if inbox.CLAIMED in event:
        named["claimed"] = 1
    yield Send(tuple(Message(messages.wake_event(tenant, run, **named)) for run in runs))


def put_for(tenant: str, registrations: Iterable[Item], event: Item) -> NoResult:
    """Put a pointer to the event for each execution that asks for pointers. The event is stored,
    and no wake for it is sent yet.
    """
    for row in registrations:
        if ASKED in row:
            yield Put(tables.MAIL, _pointer(tenant, inbox.registered(row), event))


def _pointer(tenant: str, run: str, event: Item) -> Item:
    at_ms, event_id = inbox.place_of(event)[0], inbox.event_id(event)
    return {
        "pk": keys.inbox(tenant, run),
        "sk": f"{keys.event_pointers(str(event['pk']))}{at_ms:015d}#{event_id}",
        FORMAT_FIELD: FORMAT,
        "id": event_id,
        "ttl": event["ttl"],
    }


# -- all events ------------------------------------------------------------------------------------


def event_facts(
    tenant: str, state: Execution, awaiting: Awaiting, now_ms: int
) -> inbox.FactsResult:
    """Return each stored event for the wait that is neither used nor expired, the earliest
    first.
    """
    items = yield from _usable(tenant, state, awaiting, now_ms)
    return (yield from inbox.unread_facts(tenant, state, awaiting, items, now_ms))


def _usable(
    tenant: str, state: Execution, awaiting: Awaiting, now_ms: int
) -> Generator[Effect, Any, list[Item]]:
    """Return the stored events that the execution may use, including used and expired ones. Events
    that other executions have claimed and do not use are freed for it.
    """
    items = yield from inbox.stored_events(tenant, awaiting.event_name, awaiting.event_key)
    found = [item for item in items if inbox.is_for(item, state.run)]
    if _has_claims_of_others(state, items):
        # Imported here for cold starts: most waits find no such event.
        from holdfast.runtime import event_claims  # noqa: PLC0415

        since_ms = state.takes_events_since_ms(awaiting)
        found += yield from event_claims.freed(tenant, state.run, items, now_ms, since_ms)
    return found


def _has_claims_of_others(state: Execution, items: Iterable[Item]) -> bool:
    return any(inbox.CLAIMED in item and not inbox.is_for(item, state.run) for item in items)


# -- a wait begins ---------------------------------------------------------------------------------


def look(
    tenant: str, state: Execution, awaiting: Awaiting, owner: str, now_ms: int
) -> inbox.FactsResult:
    """Register the wait, then return the facts of unread events (R13)."""
    partition = keys.event(tenant, awaiting.event_name, awaiting.event_key)
    if has_many(state):
        row = yield Get(tables.MAIL, partition, keys.registration(state.run))
        if row is not None and _is_complete(row, state, awaiting, now_ms):
            rows = yield from _pointers(tenant, state, awaiting)
            return (yield from _pointed(tenant, state, awaiting, rows, now_ms))
    yield from inbox.register(tenant, state, awaiting, now_ms)
    items = yield from _usable(tenant, state, awaiting, now_ms)
    used = sum(inbox.event_id(item) in state.used_events for item in items)
    if used >= EVENT_POINTERS_FROM:
        items = yield from _change_over(tenant, state, awaiting, owner, now_ms)
    return (yield from inbox.unread_facts(tenant, state, awaiting, items, now_ms))


def _is_complete(row: Item, state: Execution, awaiting: Awaiting, now_ms: int) -> bool:
    """Return True when the registration serves this wait, and each unread event has a pointer."""
    return bool(row.get(_COMPLETE)) and _is_in_force(row, state, awaiting, now_ms)


def _is_in_force(row: Item, state: Execution, awaiting: Awaiting, now_ms: int) -> bool:
    """Return True when senders find the registration until the wait ends, or until the sweeper's
    next check.
    """
    ends_s = now_ms // 1_000 + REGISTRATION_SECONDS_MIN
    if awaiting.due_ms is not None:
        ends_s = min(ends_s, awaiting.due_ms // 1_000 + 3_600)
    with reading("a registration"):
        return (
            inbox.OVER not in row
            and row.get(inbox.RETRIES) == state.redrives
            and int(row["ttl"]) >= ends_s
        )


# -- a check by the sweeper ------------------------------------------------------------------------


def is_served(
    tenant: str, state: Execution, awaiting: Awaiting, now_ms: int
) -> Generator[Effect, Any, bool]:
    """Return True when a recovery would find nothing to do for the wait: it is registered, and no
    unread event is stored.

    The registration is read first (R13): the sender of an event that this does not see finds the
    registration. An execution with pointers is left to a worker.
    """
    if has_many(state):
        return False
    partition = keys.event(tenant, awaiting.event_name, awaiting.event_key)
    row = yield Get(tables.MAIL, partition, keys.registration(state.run))
    if row is None or not _is_in_force(row, state, awaiting, now_ms):
        return False
    items = yield from inbox.stored_events(tenant, awaiting.event_name, awaiting.event_key)
    if inbox.unread_for(state, awaiting, items, now_ms):
        return False
    if not _has_claims_of_others(state, items):
        return True
    from holdfast.runtime import event_claims  # noqa: PLC0415  (as in `_usable`)

    free = yield from event_claims.abandoned(tenant, state.run, items, now_ms)
    return not any(state.takes_event_of(awaiting, inbox.place_of(item)[0]) for item in free)


def _change_over(
    tenant: str, state: Execution, awaiting: Awaiting, owner: str, now_ms: int
) -> Generator[Effect, Any, list[Item]]:
    """Ask senders for pointers. Return all stored events that the execution may use."""
    # Another worker may ask at the same time. Each entry and delivery has a mark of its own, so
    # that one worker does not complete what another one has begun.
    mark = f"{owner}.{awaiting.entry}"
    yield from inbox.register(tenant, state, awaiting, now_ms, **{ASKED: mark})
    items = yield from inbox.events_of(tenant, state.run, awaiting.event_name, awaiting.event_key)
    for item in inbox.unread(state, items, now_ms):
        yield Put(tables.MAIL, _pointer(tenant, state.run, item))
    yield Update(
        tables.MAIL,
        keys.event(tenant, awaiting.event_name, awaiting.event_key),
        keys.registration(state.run),
        put={_COMPLETE: 1},
        where=(Condition(ASKED, "=", mark),),
    )
    return items


# -- a wake ----------------------------------------------------------------------------------------


def facts_of_wake(
    tenant: str, state: Execution, named: Mapping[str, Any], now_ms: int
) -> inbox.FactsResult:
    """Return the facts of unread events for the waits that an event concerns. `named`: id, name and
    key of the event.
    """
    partition = keys.event(tenant, str(named["name"]), str(named["key"]))
    found: list[Fact] = []
    for frame in list(state.frames.values()):
        awaiting = frame.waiting
        if (
            isinstance(awaiting, Awaiting)
            and awaiting.kind == "event"
            and keys.event(tenant, awaiting.event_name, awaiting.event_key) == partition
        ):
            found += yield from _facts_of_wake(tenant, state, awaiting, str(named["id"]), now_ms)
    return found


def _facts_of_wake(
    tenant: str, state: Execution, awaiting: Awaiting, event_id: str, now_ms: int
) -> inbox.FactsResult:
    if has_many(state):
        rows = yield from _pointers(tenant, state, awaiting)
        if any(row["id"] == event_id for row in rows):
            return (yield from _pointed(tenant, state, awaiting, rows, now_ms))
    items = yield from inbox.events_of(tenant, state.run, awaiting.event_name, awaiting.event_key)
    return (yield from inbox.unread_facts(tenant, state, awaiting, items, now_ms))


# -- the pointers ----------------------------------------------------------------------------------


def _pointers(
    tenant: str, state: Execution, awaiting: Awaiting, after: str | None = None
) -> Generator[Effect, Any, list[Item]]:
    """Return a page of pointers to events that the wait may use, those of the earliest events
    first. `after` is the key of the last pointer of the page before.
    """
    prefix = keys.event_pointers(keys.event(tenant, awaiting.event_name, awaiting.event_key))
    since_ms = state.takes_events_since_ms(awaiting)
    if after is None and since_ms > 0:
        after = f"{prefix}{since_ms:015d}"
    rows: list[Item] = yield Query(
        tables.MAIL,
        keys.inbox(tenant, state.run),
        after=after,
        begins_with=prefix,
        limit=_POINTERS_READ_MAX,
    )
    return rows


def _pointed(
    tenant: str, state: Execution, awaiting: Awaiting, rows: list[Item], now_ms: int
) -> inbox.FactsResult:
    """Return the facts of the earliest unread events, one for each wait that may use one. Delete
    the pointers to events that the execution cannot use any longer. `rows` is the first page.
    """
    wanted = sum(
        isinstance(frame.waiting, Awaiting) and frame.waiting.kind == "event"
        for frame in state.frames.values()
    )
    items: list[Item] = []
    left = rows
    while left and len(items) < wanted:
        row, *left = left
        item = yield from _unread_of(tenant, state, awaiting, str(row["id"]), now_ms)
        if item is None:
            yield Delete(tables.MAIL, str(row["pk"]), str(row["sk"]))
        else:
            items.append(item)
        if not left and len(items) < wanted and len(rows) == _POINTERS_READ_MAX:
            # An operator may have dropped all events of a page. Without the next page, the event
            # behind them would wait until the sweeper looks for it.
            left = rows = yield from _pointers(tenant, state, awaiting, str(row["sk"]))
    return (yield from inbox.unread_facts(tenant, state, awaiting, items, now_ms))


def _unread_of(
    tenant: str, state: Execution, awaiting: Awaiting, event_id: str, now_ms: int
) -> Generator[Effect, Any, Item | None]:
    """Return the event, if the execution may still use it."""
    if event_id in state.used_events:
        return None
    partition = keys.event(tenant, awaiting.event_name, awaiting.event_key)
    item: Item | None = yield Get(tables.MAIL, partition, keys.stored_event(event_id))
    if item is None:
        return None
    require_format(item, "an event", inbox.EVENT_FORMATS)
    return item if inbox.is_unread(state, item, now_ms) else None
