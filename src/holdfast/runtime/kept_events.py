"""The list of kept events: those that found no execution which could use them.

A registration outlives its wait and its execution, so an event may wake an execution that has
ended. To read the logs before each wake would add reads to each event. The worker of that wake has
loaded the log anyway, so it does the rest:

    12:00:00.0  E1 ends; its registration stays
    12:00:01.0  the API stores X, finds the registration, and wakes E1
    12:00:01.1  the worker sees that E1 has ended without X: it lists X, and marks the registration
    12:00:02.0  the API stores Y: the only registration is marked, so it lists Y itself

A retry of E1 registers anew, and that registration has no mark. The mark has the number of retries
as its condition, so a worker that is late cannot mark the registration of a later retry.

An event that an execution has claimed (`event_claims.py`) and does not use is kept, too. The worker
that frees it wakes the executions that wait for it: they have read it while it was claimed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.core.state import Execution
from holdfast.limits import EVENT_RETENTION_SECONDS
from holdfast.runtime import event_claims, event_pointers, inbox
from holdfast.runtime.effects import Condition, Item, NoResult, Put, Update
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD


def keep_listed(tenant: str, event_id: str, at_ms: int, shown: Mapping[str, str]) -> NoResult:
    """Store a row of the list: the event found no execution, or was refused. `at_ms`: it was
    stored. Two writers of one event write one row.
    """
    yield Put(
        tables.MAIL,
        {
            "pk": keys.early_events(tenant),
            "sk": f"{at_ms:015d}#{event_id}",
            FORMAT_FIELD: FORMAT,
            "id": event_id,
            "expires": at_ms + EVENT_RETENTION_SECONDS * 1_000,
            "ttl": at_ms // 1_000 + EVENT_RETENTION_SECONDS,
            **shown,
        },
    )


def keep_after_end(tenant: str, state: Execution, named: Mapping[str, Any]) -> NoResult:
    """List an event that has woken an ended execution, unless the execution has used it. `named`:
    id, at, name and key of the event, from the wake.
    """
    name, key, event_id = str(named["name"]), str(named["key"]), str(named["id"])
    if event_id in state.used_events:
        return
    yield from keep_listed(tenant, event_id, int(named["at"]), {"name": name, "key": key})
    yield Update(
        tables.MAIL,
        keys.event(tenant, name, key),
        keys.registration(state.run),
        put={inbox.OVER: 1},
        where=(Condition(inbox.RETRIES, "<=", state.redrives),),
    )


def give_back(tenant: str, run: str, claim: event_claims.Claim) -> NoResult:
    """Free an event that the execution has claimed by this claim and does not use."""
    partition = keys.event(tenant, claim.name, claim.key)
    place = partition, keys.stored_event(claim.event_id)
    freed = yield from event_claims.free(place, run, claim.claim)
    if freed is not None:
        yield from _offer(tenant, claim.name, claim.key, freed)


def free_abandoned(tenant: str, run: str, name: str, key: str) -> NoResult:
    """Free the events of the name and key that the execution has claimed and does not use, because
    it has ended or no longer waits for them.
    """
    items = yield from inbox.stored_events(tenant, name, key)
    claimed = [item for item in items if inbox.CLAIMED in item and item.get(inbox.ADDRESSEE) == run]
    unused = (yield from event_claims.unused_by(tenant, run, claimed)) if claimed else []
    for item in unused:
        freed = yield from event_claims.free_claim_of(item)
        if freed is not None:
            yield from _offer(tenant, name, key, freed)


def _offer(tenant: str, name: str, key: str, freed: Item) -> NoResult:
    """Wake the executions that wait for the event. If there is none, list the event as kept."""
    if not (yield from event_pointers.wake(tenant, name, key, freed, None)):
        event_id, at_ms = inbox.event_id(freed), int(freed["at"])
        yield from keep_listed(tenant, event_id, at_ms, {"name": name, "key": key})
