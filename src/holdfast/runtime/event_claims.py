"""Claims: an event that several executions may use is used by one of them.

An event without an addressee wakes each execution that waits for its name and key. Each of them
decides on its own log, so no log can refuse the event because of another log. The stored event
decides: an execution claims it by a conditional write before the commit that uses it. Its sender
may have claimed it for the execution already.

    E1      decide: the wait takes X ── claim X for E1 ── commit
    E2      decide: the wait takes X ── claim X: refused ── decide again without X

Only an event that the decision uses is claimed. A claim is repeated for the same execution, so a
crash between claim and commit loses nothing: the recovery decides again, and claims X again.

**A claim by the sender.** For most events one execution alone has registered. Its registration
names the wait that has registered last, and the sender stores the event with a claim for that wait.
The worker of the wait then needs no claim of its own:

    E1      register: wait 17 ──────────────────────────────── decide: wait 17 takes X ── commit
    sender          read registrations ── put X: for E1, wait 17 ── wake E1

Only that wait may use the event without another claim. Every other wait of E1, also a later one or
one after a retry of E1, has another name, and claims X as before. A wait opens in the log before
its execution registers. So a log that was read after such a claim shows the wait. If the wait has
ended there without X, no commit of that wait can follow, and X may become free. While any wait of
E1 is open for X's name and key, X is left to E1: one wait may have claimed X over the claim of
another one.

E2 may begin to wait after the sender has read the registrations and before X is stored. It is not
woken. So if E1 does not use X, the worker of the wake gives X to the executions that have
registered (`own_claims.py`). If E1 is in quarantine, its wait is open, and X is left to it.

**A claim without use.** The commit may be refused, because another worker has ended the wait or
E1. The worker then gives X back (`kept_events.py`). If it crashes before that, the recovery of its
message does so. So does the next execution that begins to wait, recovers, times out or is checked
by the sweeper. It reads the log of E1:

    E1 waits for events of X's name and key    X is left to it
    E1 has used X                              X is used. If E1 has ended, its registration gets a
                                               mark
    otherwise                                  X is free again

E1 may be retried or wait anew at the same time, and use X after all. So each claim of a worker,
also a repeated one, has a value of its own: the delivery, and the number of the record that would
use X. X becomes free only if it still has the claim that was read before the log:

    E2   read X: claim c1 ── read the log of E1: ended without X ── free X if its claim is c1
    E1   retried: decide ── claim X again: c2 ── commit

If the log that was read after c1 has no wait for X, then it is longer than the log for which c1 was
made. So the commit of c1 is refused.

Either E1 claims before E2 writes, and X has c2; or E2 is first, and X has no claim of E1 any
longer: E1 then claims it as each other execution does.

**The mark.** It is a hash of the ids of all unexpired events that the ended execution has claimed
and used. As long as the stored events give the same hash, later waits need not read that log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.core.facts import EventReceived, Fact
from holdfast.core.state import Awaiting, Execution
from holdfast.errors import FormatError, HoldfastError, is_damage
from holdfast.runtime import inbox
from holdfast.runtime.effects import Condition, Effect, Item, Query, Update
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log

#: The attribute of a registration with the hash of the claimed events that its execution has used.
_USED: Final = "us"
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True)
class Claim:
    """An event that a decision uses. `claim` is the value of its claim in the stored event.
    `fails`: the event fails the wait.
    """

    event_id: str
    name: str
    key: str
    claim: str
    fails: bool = False


# -- the sender ------------------------------------------------------------------------------------


def for_only_execution(item: Item) -> Generator[Effect, Any, Item]:
    """Return the item of a new event with a claim for the execution that has registered for it, if
    it is one alone.
    """
    # An older state of the registrations is good enough: the claim for a wait that has ended is
    # given up like each other claim without use. This read costs half of a consistent one.
    partition, prefix = str(item["pk"]), keys.REGISTRATION_PREFIX
    rows = yield Query(tables.MAIL, partition, begins_with=prefix, limit=2, is_strong=False)
    if len(rows) != 1 or inbox.WAIT not in rows[0] or inbox.OVER in rows[0]:
        return item
    claim = {inbox.CLAIMED: rows[0][inbox.WAIT]}
    return {**inbox.addressed(item, inbox.registered(rows[0])), **claim}


# -- the execution that uses an event --------------------------------------------------------------


def claims_of(
    before: Execution, after: Execution, offered: Iterable[Fact], claim: str
) -> dict[str, Claim]:
    """Return the events that the decision from `before` to `after` uses and that another execution
    may use, too, by their ids. Leave out an event that its sender has claimed for the wait.
    """
    found: dict[str, Claim] = {}
    for fact in offered:
        if (
            isinstance(fact, EventReceived)
            and fact.claim is not None
            and fact.event_id in after.used_events
            and fact.event_id not in before.used_events
        ):
            frame = before.frame_of(fact.entry)
            if (
                frame is not None
                and isinstance(frame.waiting, Awaiting)
                and fact.claim != inbox.wait_of(frame.waiting)
            ):
                name, key = frame.waiting.event_name, frame.waiting.event_key
                # Several waits of the execution may be offered the event. The first one uses it.
                fails = fact.error is not None
                found.setdefault(fact.event_id, Claim(fact.event_id, name, key, claim, fails))
    return found


def take(tenant: str, run: str, wanted: Claim) -> Generator[Effect, Any, bool]:
    """Claim the event for the execution. Return False when another execution has claimed it, or an
    operator has dropped it.
    """
    # A lower format would let older code read an event that fails a wait.
    mark = inbox.FAILING_MARK if wanted.fails else inbox.EVENT_MARK
    claimed = yield Update(
        tables.MAIL,
        keys.event(tenant, wanted.name, wanted.key),
        keys.stored_event(wanted.event_id),
        put={**mark, inbox.ADDRESSEE: run, inbox.CLAIMED: wanted.claim},
        where=(
            # Without this condition, the write would create an event that TTL has deleted.
            Condition("at", "present"),
            Condition(inbox.ADDRESSEE, "=", run, or_absent=True),
        ),
    )
    return bool(claimed.is_done)


def free(place: tuple[str, str], run: str, claim: str) -> Generator[Effect, Any, Item | None]:
    """Give up the claim of an execution that does not use the event. `place`: the keys of the
    event. Return the event that each execution may use; None when it has another claim now, or an
    operator has dropped it.
    """
    freed = yield Update(
        tables.MAIL,
        *place,
        remove=(inbox.ADDRESSEE, inbox.CLAIMED),
        where=(Condition(inbox.ADDRESSEE, "=", run), Condition(inbox.CLAIMED, "=", claim)),
    )
    return freed.item if freed.is_done else None


def free_claim_of(item: Item) -> Generator[Effect, Any, Item | None]:
    """Give up the claim that the event has. The result is that of `free`."""
    place = str(item["pk"]), str(item["sk"])
    return (yield from free(place, str(item[inbox.ADDRESSEE]), str(item[inbox.CLAIMED])))


# -- the executions that wait ----------------------------------------------------------------------


def freed(
    tenant: str, run: str, items: Iterable[Item], now_ms: int, since_ms: int
) -> Generator[Effect, Any, list[Item]]:
    """Free the events that other executions have claimed and do not use, and return them. `items`:
    all stored events of one name and key. Events that were stored before `since_ms` keep their
    claims: this execution does not use them, so another one frees them.
    """
    found = []
    for item in (yield from abandoned(tenant, run, items, now_ms)):
        if inbox.place_of(item)[0] < since_ms:
            continue
        free_item = yield from free_claim_of(item)
        if free_item is not None:
            found.append(free_item)
    return found


def abandoned(
    tenant: str, run: str, items: Iterable[Item], now_ms: int
) -> Generator[Effect, Any, list[Item]]:
    """Return the unexpired events that other executions have claimed and do not use, because they
    no longer wait. `items`: all stored events of one name and key.
    """
    claimed: dict[str, list[Item]] = {}
    for item in items:
        with reading("an event"):
            is_expired = int(item["expires"]) <= now_ms
        if inbox.CLAIMED in item and not is_expired and not inbox.is_for(item, run):
            claimed.setdefault(str(item[inbox.ADDRESSEE]), []).append(item)
    claimed.pop(inbox.DROPPED, None)
    if not claimed:
        return []
    partition = str(next(iter(claimed.values()))[0]["pk"])
    rows = yield Query(tables.MAIL, partition, begins_with=keys.REGISTRATION_PREFIX)
    marks: Mapping[str, Any] = {inbox.registered(row): row.get(_USED) for row in rows}
    found: list[Item] = []
    for claimant, theirs in claimed.items():
        if marks.get(claimant) != _hash_of(theirs):
            found += yield from unused_by(tenant, claimant, theirs)
    return found


def unused_by(tenant: str, run: str, items: list[Item]) -> Generator[Effect, Any, list[Item]]:
    """Return the events that the execution has claimed and does not use, because it has ended or no
    longer waits for them. If it has ended, mark its registration with the others.

    `items` are of one name and key. They were read before: the log is read after them.
    """
    log = yield from _log_of(tenant, run)
    if log is None:
        return []
    state = log.state
    if state is None:
        # TTL has deleted the log. Its execution had ended before any event was sent that is still
        # stored, because logs are kept longer than events.
        return items
    items = [item for item in items if not _is_awaited(tenant, state, item)]
    used = [item for item in items if inbox.event_id(item) in state.used_events]
    if used and state.is_ended:
        yield from _mark(state, used)
    return [item for item in items if item not in used]


def _is_awaited(tenant: str, state: Execution, item: Item) -> bool:
    """Return True when the execution waits for the event."""
    stored_ms = inbox.place_of(item)[0]
    return not state.is_ended and any(
        isinstance(frame.waiting, Awaiting)
        and frame.waiting.kind == "event"
        and keys.event(tenant, frame.waiting.event_name, frame.waiting.event_key) == item["pk"]
        and state.takes_event_of(frame.waiting, stored_ms)
        for frame in state.frames.values()
    )


def _log_of(tenant: str, run: str) -> Generator[Effect, Any, Log | None]:
    """Return the log of an execution; None if it cannot be read. Its events are then left to
    it, because it may have used them.
    """
    log = Log(tenant, run, "claims", "")
    try:
        yield from log.load()
    except FormatError:
        return None
    except HoldfastError as error:
        if not is_damage(error):
            raise
        return None
    return log


def _mark(state: Execution, used: list[Item]) -> Generator[Effect, Any, None]:
    """Mark the registration of an ended execution, and keep it as long as its events. A
    registration of a later retry gets no mark.
    """
    newest_ms = max(int(item["expires"]) for item in used)
    yield Update(
        tables.MAIL,
        str(used[0]["pk"]),
        keys.registration(state.run),
        put={
            FORMAT_FIELD: FORMAT,
            inbox.RETRIES: state.redrives,
            inbox.OVER: 1,
            _USED: _hash_of(used),
            "ttl": newest_ms // 1_000 + _DAY_SECONDS,
        },
        where=(Condition(inbox.RETRIES, "<=", state.redrives, or_absent=True),),
    )


def _hash_of(items: Iterable[Item]) -> str:
    ids = "\n".join(sorted(map(inbox.event_id, items)))
    return hashlib.sha256(ids.encode()).hexdigest()[:16]
