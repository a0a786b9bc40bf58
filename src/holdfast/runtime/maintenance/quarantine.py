"""Quarantine: executions whose message failed in every delivery stay here until an operator acts.

* One item represents one execution. It keeps the body of a start message, because this is the only
  copy of the accepted input. Any other message only asked a worker to look at the log again.
* The quarantine holds until the log grows: an execution that has continued is not stuck. A repair
  deletes the item.
* An ended execution is in quarantine if workers crash on a redrive of it, as long as the redrive is
  stored. Otherwise an item of an ended execution only waits for a repair: the follow-ups of the end
  may be missing, and no message is left that would cause them.
* The sweeper does not wake a quarantined execution. Its own timers, events and answers may, and a
  stop does.
* The execution keeps its watchdog row (R11). Without that row its log would not be renewed (R16).
* An unreadable dead letter belongs to no known execution. It stays in its queue; a note names it.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast import resources
from holdfast.core.decision import iso_time
from holdfast.core.facts import RedriveRequested
from holdfast.core.redriving import is_redriven_by
from holdfast.errors import HoldfastError, is_passing
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import DEAD_LETTER_ROUNDS_MAX, NAME_RETENTION_SECONDS, RECORD_RETENTION_SECONDS
from holdfast.runtime import inbox, messages, watchdog
from holdfast.runtime.effects import (
    Clock,
    Delete,
    Effect,
    Get,
    Item,
    Measure,
    Message,
    NoResult,
    Put,
    PutIfAbsent,
    Query,
    Send,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, FORMATS, Formats, require_format
from holdfast.runtime.storage.log import Log

#: Stands for the tenant in the key of a note about an unreadable letter. No tenant has this name.
_UNREADABLE: Final = "~"
#: If the row of a name expires sooner than this, the release of its execution is refused. TTL could
#: delete the row before it is extended, and another execution could get the name.
_NAME_SECONDS_MIN: Final = 3_600
#: The lifetime of a note about an unreadable letter. The sweeper writes the note again each minute
#: while the letter is in its queue.
_NOTE_SECONDS: Final = 86_400
NOTE_FRESH_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A quarantined execution. `body` is the message that failed; `letters` are the ids of its dead
    letters, in order.

    `is_redrive`: the execution has ended, and a requested retry of it failed. `is_end`: it has
    ended, and the follow-ups of its end failed.
    """

    tenant: str
    run: str
    body: Mapping[str, Any]
    letters: tuple[str, ...]
    at_ms: int
    is_redrive: bool = False
    is_end: bool = False

    @property
    def is_start(self) -> bool:
        return str(self.body["k"]) == messages.START

    @property
    def reason(self) -> str:
        rounds = f"failed in every delivery, {DEAD_LETTER_ROUNDS_MAX + 1} times round"
        if self.is_end:
            return f"a message {rounds}: its end may be unknown to its list, the bus or its parent"
        what = "its redrive" if self.is_redrive else f"a message of kind {self.body['k']}"
        return f"{what} {rounds}: its worker may die of it"

    def may_be_over(self, now_ms: int) -> bool:
        """Return True when the start is so old that the execution may have ended and TTL may have
        deleted its log.
        """
        oldest_ms = now_ms - RECORD_RETENTION_SECONDS * 1_000
        return self.is_start and int(self.body["t0"]) < oldest_ms

    def holds(self, log: Log) -> bool:
        """Return True when the loaded log has neither ended nor grown since the quarantine. For
        ended executions see `held_in`.
        """
        if log.state is None:
            return self.is_start
        return not (log.state.is_ended or log.records[-1].at_ms > self.at_ms)


# -- putting and releasing -------------------------------------------------------------------------


def put(
    body: Mapping[str, Any], letters: tuple[str, ...], now_ms: int, formats: Formats = FORMATS
) -> NoResult:
    item: Item = {
        "pk": keys.QUARANTINE,
        "sk": keys.execution(body["t"], body["run"]),
        FORMAT_FIELD: FORMAT,
        "body": json.dumps(body, ensure_ascii=False),
        "of": ",".join(letters),
        "at": now_ms,
    }
    is_start = body["k"] == messages.START
    if not is_start:
        yield from _watch(Log(body["t"], body["run"], "quarantine", "", formats), now_ms)
    # A later dead letter must not replace a start message: without a log, only the start message
    # can begin the execution.
    yield from _put_over(item, is_start=is_start)
    yield Measure(resources.METRIC_EXECUTIONS_QUARANTINED, 1)


def _watch(log: Log, now_ms: int) -> NoResult:
    """Add a watchdog row for an execution that has none: until now only its message led to it."""
    try:
        yield from log.load()
    except HoldfastError as error:
        if is_passing(error):
            raise
        # This code cannot write to the execution's log.
        return
    if log.state is not None and not (log.state.is_ended or log.state.is_opened):
        look_ms = watchdog.next_look_ms(log.state, now_ms, now_ms)
        yield Put(
            tables.MAIL, watchdog.watch_item(log.tenant, log.run, look_ms, log.sequence, now_ms)
        )


def _put_over(item: Item, *, is_start: bool) -> NoResult:
    found = None if is_start else (yield PutIfAbsent(tables.MAIL, item))
    if is_start or found is not None:
        kept = {} if found is None else {"body": found["body"]}
        yield Put(tables.MAIL, {**item, **kept})


def find(tenant: str, run: str) -> Generator[Effect, Any, Quarantined | None]:
    """Return the quarantine item of the execution. It may no longer be in force; see `held_in`."""
    item = yield Get(tables.MAIL, keys.QUARANTINE, keys.execution(tenant, run))
    return None if item is None else _read(item)


def held_in(log: Log) -> Generator[Effect, Any, Quarantined | None]:
    """Return the quarantine item if the execution is in quarantine now. `log` is loaded."""
    if log.state is not None and log.state.is_ended and not log.state.resting:
        return None
    held = yield from find(log.tenant, log.run)
    return None if held is None else (yield from _if_it_holds(held, log))


def _if_it_holds(held: Quarantined, log: Log) -> Generator[Effect, Any, Quarantined | None]:
    if held.holds(log):
        return held
    if (yield from _is_redrive_held(held, log)):
        return replace(held, is_redrive=True)
    return None


def _is_redrive_held(held: Quarantined, log: Log) -> Generator[Effect, Any, bool]:
    """Return True when a redrive of an ended execution is in quarantine. Workers crash on it before
    they write, so the log still has its end and the redrive is still stored.
    """
    state = log.state
    if state is None or not state.is_ended or log.records[-1].at_ms > held.at_ms:
        return False
    wishes = yield from inbox.stored_control(log.tenant, state)
    return any(
        isinstance(wish, RedriveRequested)
        and stored_ms <= held.at_ms
        and is_redriven_by(state, wish)
        for stored_ms, wish in wishes
    )


def of_tenant(tenant: str) -> Generator[Effect, Any, list[Quarantined]]:
    """Return the tenant's readable quarantine items. They may no longer be in force."""
    found = yield from _all_of(tenant)
    return [held for _, held in found if isinstance(held, Quarantined)]


def damaged(tenant: str) -> Generator[Effect, Any, list[tuple[str, HoldfastError]]]:
    """Return the executions whose quarantine item cannot be read, with the error. They are reported
    separately, so that the readable items are still shown.
    """
    found = yield from _all_of(tenant)
    return [(run, error) for run, error in found if isinstance(error, HoldfastError)]


def _all_of(
    tenant: str,
) -> Generator[Effect, Any, list[tuple[str, Quarantined | HoldfastError]]]:
    items = yield Query(tables.MAIL, keys.QUARANTINE, begins_with=keys.execution(tenant, ""))
    return [(str(item["sk"]).partition("#")[2], _read_if_it_goes(item)) for item in items]


def _read_if_it_goes(item: Item) -> Quarantined | HoldfastError:
    try:
        return _read(item)
    except HoldfastError as error:
        return error


def resting(tenant: str) -> Generator[Effect, Any, list[Quarantined]]:
    """Return the quarantined executions. If a log cannot be read, its execution counts as
    quarantined.
    """
    return [held for held in (yield from to_repair(tenant)) if not held.is_end]


def to_repair(tenant: str) -> Generator[Effect, Any, list[Quarantined]]:
    """Return the quarantined executions, and ended executions whose end may not have been
    published.
    """
    found: list[Quarantined] = []
    for held in (yield from of_tenant(tenant)):
        still = yield from _still(held)
        if still is not None:
            found.append(still)
    return found


def forget_moved(tenant: str) -> NoResult:
    """Delete the items of executions that have continued."""
    for held in (yield from of_tenant(tenant)):
        # A worker may have put the execution into quarantine again since the read. So delete the
        # item only if it is still the one that was read.
        if (yield from _still(held)) is None and (yield from find(tenant, held.run)) == held:
            yield from drop(held)


def _still(held: Quarantined) -> Generator[Effect, Any, Quarantined | None]:
    log = Log(held.tenant, held.run, "quarantine", "")
    try:
        yield from log.load()
        return (yield from _if_it_holds(held, log)) or _if_it_is_an_end(held, log)
    except HoldfastError as error:
        if is_passing(error):
            raise
        return held


def _if_it_is_an_end(held: Quarantined, log: Log) -> Quarantined | None:
    state = log.state
    is_end = state is not None and state.is_ended and log.records[-1].at_ms <= held.at_ms
    return replace(held, is_end=True) if is_end else None


def refusal(held: Quarantined, now_ms: int) -> Generator[Effect, Any, str | None]:
    """Return the reason why the message cannot be sent again; None when `release` can send it."""
    if held.is_end:
        return None
    if held.may_be_over(now_ms):
        return "it may have begun and ended: no log is kept for so long"
    if _has_name(held) and (yield from _name_row(held, now_ms)) is None:
        return "its name is kept for it no longer: it may have been started again by another call"
    return None


def _has_name(held: Quarantined) -> bool:
    return held.is_start and held.body.get("name") is not None


def _name_row(held: Quarantined, now_ms: int) -> Generator[Effect, Any, Item | None]:
    """Return the row of the execution's name, if the row belongs to this execution and TTL will not
    delete it soon.
    """
    body = held.body
    name = keys.name(held.tenant, str(body["workflow"]), str(body["name"]))
    row = yield Get(tables.MAIL, name, keys.ONLY)
    with reading("the row of a name"):
        is_own = row is not None and row["run"] == held.run
        return row if is_own and int(row["ttl"]) > now_ms // 1_000 + _NAME_SECONDS_MIN else None


def release(held: Quarantined) -> NoResult:
    """Send the message again, alone in its batch, so that its deliveries are counted from one.

    The message names the last dead letters, so that a worker may take over the leases of their
    workers before these end. If the log of a start has begun, `recover` is sent instead, because a
    start message has no effect then.
    """
    body, log = held.body, keys.execution(held.tenant, held.run)
    if not held.is_start or (yield Query(tables.EXECUTIONS, log, reverse=True, limit=1)):
        body = messages.recover(held.tenant, held.run)
    elif _has_name(held):
        now_ms = yield Clock()
        row = yield from _name_row(held, now_ms)
        if row is None:
            # Do not begin the execution. `refusal` gives the reason to the operator.
            return
        # The execution begins now, so its name is reserved from now on. No other process can change
        # this row at the same time: a start writes only a missing row, and only an execution with a
        # log extends one.
        yield Put(tables.MAIL, {**row, "ttl": now_ms // 1_000 + NAME_RETENTION_SECONDS})
    yield from _send_again(held, body)


def release_to_stop(held: Quarantined) -> NoResult:
    """Release a start message so that a worker begins the log without evaluating a state. A stop
    can then be applied.
    """
    yield from _send_again(held, {**held.body, "held": True})


def _send_again(held: Quarantined, body: Mapping[str, Any]) -> NoResult:
    # Name all letters of an ended execution. One of them wrote the end, and a worker publishes the
    # event of the end only if its message names that letter.
    letters = held.letters if held.is_end else held.letters[-DEAD_LETTER_ROUNDS_MAX - 1 :]
    again = {**body, "of": list(letters), "released": len(letters)}
    yield Send((Message(again),), queue="single")
    yield from drop(held)


def drop(held: Quarantined) -> NoResult:
    yield Delete(tables.MAIL, keys.QUARANTINE, keys.execution(held.tenant, held.run))


def _read(item: Item) -> Quarantined:
    require_format(item, "a quarantined message")
    with reading("a quarantined message"):
        tenant, _, run = str(item["sk"]).partition("#")
        letters = tuple(str(item["of"]).split(","))
        body = messages.require_readable(json.loads(str(item["body"])))
        return Quarantined(tenant, run, body, letters, int(item["at"]))


# -- unreadable letters ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnreadableMessage:
    """A message in a dead-letter queue that cannot be read. `said` is the reason; it never quotes
    the message.
    """

    message_id: str
    said: str
    seen_ms: int


def note(message_id: str, error: HoldfastError, now_ms: int) -> NoResult:
    yield Put(
        tables.MAIL,
        {
            "pk": keys.QUARANTINE,
            "sk": keys.execution(_UNREADABLE, message_id),
            FORMAT_FIELD: FORMAT,
            "said": f"{error.code}: {error.message}",
            "at": now_ms,
            "ttl": now_ms // 1_000 + _NOTE_SECONDS,
        },
    )


def unreadable(now_ms: int) -> Generator[Effect, Any, list[UnreadableMessage]]:
    """Return the unreadable messages that a recent sweep has found: they are still in their
    queues.
    """
    items = yield Query(tables.MAIL, keys.QUARANTINE, begins_with=keys.execution(_UNREADABLE, ""))
    found: list[UnreadableMessage] = []
    for item in items:
        require_format(item, "a note of a dead letter")
        message_id = str(item["sk"]).partition("#")[2]
        found.append(UnreadableMessage(message_id, str(item["said"]), int(item["at"])))
    return [one for one in found if one.seen_ms > now_ms - NOTE_FRESH_MS]


# -- display ---------------------------------------------------------------------------------------


#: The kind of the wait that a quarantined execution shows.
WAIT: Final = "quarantined"


def wait_of(held: Quarantined) -> dict[str, Any]:
    """Return the wait that a quarantined execution shows."""
    return {"kind": WAIT, "since": iso_time(held.at_ms), "reason": held.reason}


def not_begun(held: Quarantined) -> dict[str, Any]:
    """Return the description of an execution without a log whose start message is in quarantine."""
    body = held.body
    return {
        "execution": held.run,
        "name": body.get("name"),
        "workflow": body["workflow"],
        "definition": body["definition"],
        "status": "RUNNING",
        "started": iso_time(body["t0"]),
        "waits": [wait_of(held)],
    }


def listed(held: Quarantined) -> dict[str, Any]:
    """Return the list row of an execution that has no list entry. If its start message is stored,
    the row has the most fields.
    """
    body = held.body
    started_ms = int(body.get("t0", held.at_ms))
    return {
        "execution": held.run,
        "name": body.get("name") or held.run,
        "workflow": body.get("workflow", ""),
        "status": "RUNNING",
        "started": iso_time(started_ms),
        "started_ms": started_ms,
        "waits_for": WAIT,
    }
