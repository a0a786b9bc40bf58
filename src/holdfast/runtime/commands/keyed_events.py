"""The events that start a keyed workflow: each goes to one execution of its key, and is used once.

    API     take or find the execution ── put the event, addressed to it ── read its log: has it
            ended without the event? Then take the key again, and address the event anew.
    worker  commit the end ── release the key ── read the events that are addressed to the ended
            execution and unused. Take the key for the next one, address them to it ── read its
            log, as the API does.

Each side writes before it reads. So if an event arrives at the same time as an end, at least one of
the two finds it. An event counts as used when the log of its execution says so. An ended log does
not change, so no execution has used an event that is addressed anew. A retry continues an ended
log. It holds the key before that (`keyed.py`), and then the end leaves the events to it:

    12:00:00.0  E1 ends; X is addressed to it, and unused
    12:00:00.1  the API holds the key for a retry of E1
    12:00:00.2  the worker of the end cannot release the key: it sends itself a message for later
    12:00:01.0  E1 continues, and uses X. Or the API has crashed before it stored the retry: the
                message arrives, the hold is over, and X goes to the next execution.

A workflow that fails before its first wait uses no event. Each event would then start executions
for ever. So the item of an event counts the executions that had it and ended without any event.
After `KEYED_EXECUTIONS_MAX` of them the event stays with the last one: `holdfast retry` of it, with
mended code, uses the event. An execution that has used an event is not counted: of a hundred events
at once, each may be used by an execution of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from typing import Any

from holdfast.core.state import Execution
from holdfast.limits import (
    KEYED_EXECUTIONS_MAX,
    RACES_MAX,
    RECORD_RETENTION_SECONDS,
    SQS_DELAY_SECONDS_MAX,
)
from holdfast.runtime import event_pointers, inbox, messages
from holdfast.runtime.commands import keyed
from holdfast.runtime.commands.keyed import KeyRule, KeySlot
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import (
    Clock,
    Condition,
    Effect,
    Get,
    Item,
    Message,
    NoResult,
    Send,
    Update,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.log import Log


def address(known: Lookup, slot: KeySlot, item: Item, chance: bytes) -> Generator[Effect, Any, str]:
    """Return the execution that a stored event is for. If the execution has ended before the event
    was stored, the next execution gets the event. Raises ServiceFault HF562.
    """
    event_id = inbox.event_id(item)
    run = str(item[inbox.ADDRESSEE])
    for number in range(RACES_MAX):
        if run == inbox.DROPPED:
            return run
        state = yield from keyed.state_of(known, slot.tenant, run)
        if not isinstance(state, Execution) or not state.is_ended or event_id in state.used_events:
            return run
        stored: Item | None = yield Get(tables.MAIL, str(item["pk"]), str(item["sk"]))
        if stored is not None and stored[inbox.ADDRESSEE] != run:
            # The worker that processed the end has already given the event to another execution.
            # Use that execution. Otherwise a second one would be started, which would not get the
            # event.
            run = str(stored[inbox.ADDRESSEE])
            continue
        # The event's id is part of the random bytes. Without it, two events at the same time could
        # give two executions the same id.
        drawn = chance + bytes([number]) + event_id.encode()
        next_run = yield from keyed.running(known, slot, hashlib.sha256(drawn).digest()[:8])
        run = yield from _change_addressee(item, state, next_run)
    raise keyed.busy(slot)


def _change_addressee(item: Item, ended: Execution, after: str) -> Generator[Effect, Any, str]:
    """Address the event of the ended execution to another one, unless another process has done so.
    Return its addressee.
    """
    count = _times_addressed(item) + (0 if ended.used_events else 1)
    written = yield Update(
        tables.MAIL,
        str(item["pk"]),
        str(item["sk"]),
        put={inbox.ADDRESSEE: after, inbox.ADDRESSED: count},
        where=(Condition(inbox.ADDRESSEE, "=", ended.run),),
    )
    return str(written.item[inbox.ADDRESSEE])


def at_end(known: Lookup, log: Log) -> NoResult:
    """Release the key of an ended execution. Events that it has not used go to the next execution,
    which is started here. If the workflow says so, they are dropped instead.
    """
    assert log.state is not None
    definition = yield from known.programs.fetch(log.tenant, log.state.definition)
    old = keyed.rule_of(log.state.workflow, definition)
    key = yield from keyed.key_of(log.tenant, log.run)
    if old is None or key is None:
        return
    # This worker may have older code without the workflow. It then uses the rule in the execution's
    # own definition.
    newest = keyed.rule_for(known, old.workflow) if old.workflow in known.workflows else old
    slot, now_ms = KeySlot(log.tenant, newest or old, key), (yield Clock())
    row = yield from keyed.release(slot, log.state, now_ms)
    if row.get("run") == log.run and keyed.is_held_for_retry(row, log.state, now_ms):
        later = messages.recover(log.tenant, log.run)
        yield Send((Message(later, SQS_DELAY_SECONDS_MAX),))
        return
    unread = [
        item
        for item in (yield from _unread(known, log, old, key, now_ms))
        if log.state.used_events or _times_addressed(item) < KEYED_EXECUTIONS_MAX
    ]
    if unread and newest and newest.keeps_unread and newest.starts_on == old.starts_on:
        yield from _hand_over(known, slot, log.state, unread)
    elif unread:
        for item in unread:
            yield from _change_addressee(item, log.state, inbox.DROPPED)
    elif "run" in row:
        # A worker may have crashed after it gave events to that execution and before it sent the
        # wake. So send the wake again: without it that execution would not read the events.
        yield from _wake(log.tenant, str(row["run"]))
    yield Update(
        tables.MAIL,
        keys.inbox(log.tenant, log.run),
        keys.BUSINESS_KEY,
        put={"ttl": now_ms // 1_000 + RECORD_RETENTION_SECONDS},
    )


def _times_addressed(item: Item) -> int:
    """Return how many executions have had the event and used none. The present addressee is one of
    them.
    """
    return int(item.get(inbox.ADDRESSED, 1))


def _hand_over(known: Lookup, slot: KeySlot, ended: Execution, unread: list[Item]) -> NoResult:
    """Address the events of an ended execution to the next one. That one may begin and end before
    it has received all of them.
    """
    chance = hashlib.sha256(ended.run.encode()).digest()[:8]
    run = yield from keyed.running(known, slot, chance)
    given: list[Item] = []
    for item in unread:
        addressee = yield from _change_addressee(item, ended, run)
        given.append({**item, inbox.ADDRESSEE: addressee})
    state = yield from keyed.state_of(known, slot.tenant, run)
    if isinstance(state, Execution) and state.is_ended:
        for item in given:
            run = yield from address(known, slot, item, chance)
    registration = yield Get(tables.MAIL, str(given[0]["pk"]), keys.registration(run))
    if registration is not None:
        for item in given:
            yield from event_pointers.put_for(slot.tenant, [registration], item)
    yield from _wake(slot.tenant, run)


def _wake(tenant: str, run: str) -> NoResult:
    yield Send((Message(messages.wake_mail(tenant, run, messages.EVENT_MAIL)),))


def _unread(
    known: Lookup, log: Log, rule: KeyRule, key: str, now_ms: int
) -> Generator[Effect, Any, list[Item]]:
    """Return the unexpired events of the key that are addressed to the execution and that it has
    not used, the earliest first. The log is read again here, because the execution may have been
    retried.
    """
    if rule.starts_on is None:
        return []
    items = yield from inbox.events_of(log.tenant, log.run, rule.starts_on, key)
    with reading("an event"):
        mine = [
            item
            for item in sorted(items, key=inbox.place_of)
            if item.get(inbox.ADDRESSEE) == log.run
            and inbox.DIRECT not in item
            # An event with a claim was sent when no workflow was started by it. Its next user may
            # be any execution (`event_claims.py`).
            and inbox.CLAIMED not in item
            and int(item["expires"]) > now_ms
        ]
    assert log.state is not None
    mine = [item for item in mine if inbox.event_id(item) not in log.state.used_events]
    state = (yield from keyed.state_of(known, log.tenant, log.run)) if mine else None
    if not isinstance(state, Execution) or not state.is_ended:
        return []
    return [item for item in mine if inbox.event_id(item) not in state.used_events]
