"""Quarantine: executions whose message failed in every delivery stay here until an operator acts.

* One item holds one execution. The item keeps the body of a start message, because it is the only
  copy of the accepted input. Any other message only asked a worker to look at the log again.
* It holds until the log grows. An execution that has moved since is not stuck; a repair deletes the
  item.
* An ended execution is quarantined by a redrive that no worker could carry out, as long as the
  redrive is stored. Otherwise the item waits for a repair alone: the follow-ups of the end may be
  missing, and no message is left that would cause them.
* The sweeper does not wake a quarantined execution. Its own timers, events and answers may, and a
  stop does.
* It keeps its watchdog row (R11), or its log would not be renewed (R16).
* An unreadable dead letter belongs to no known execution. It stays in its queue; a note names it.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast import resources
from holdfast.core.advance import is_redriven_by
from holdfast.core.decision import iso_time
from holdfast.core.facts import RedriveRequested
from holdfast.errors import HoldfastError, is_passing
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

#: No tenant has this name.
_UNREADABLE: Final = "~"
#: A name whose row expires sooner than this may be free before the row is extended.
_NAME_SECONDS_MIN: Final = 3_600
#: The lifetime of an unreadable letter's note. It is written again each minute while the letter is
#: in its queue.
_NOTE_SECONDS: Final = 86_400
NOTE_FRESH_MS: Final = 600_000


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A quarantined execution. `body` is the message that failed, `letters` the ids under which it
    failed, in turn.

    `is_redrive`: the execution has ended, and its requested retry failed; `is_end`: it has ended,
    and the follow-ups of its end failed.
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
        """Return True when the start is so old that its execution may have ended and TTL deleted
        its log.
        """
        oldest_ms = now_ms - RECORD_RETENTION_SECONDS * 1_000
        return self.is_start and int(self.body["t0"]) < oldest_ms

    def holds(self, log: Log) -> bool:
        """Return True when the log has neither ended nor continued since the quarantine. `log` is
        loaded. For ended executions see `held_in`.
        """
        if log.state is None:
            return self.is_start
        return not (log.state.is_ended or log.records[-1].at_ms > self.at_ms)


# -- in and out ------------------------------------------------------------------------------------


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
    # A later dead letter must not replace an older start: without a log only the start can begin
    # the execution.
    yield from _put_over(item, is_start=is_start)
    yield Measure(resources.METRIC_EXECUTIONS_QUARANTINED, 1)


def _watch(log: Log, now_ms: int) -> NoResult:
    """Add a watchdog row if the execution was never opened: until now only its message guarded
    it.
    """
    try:
        yield from log.load()
    except HoldfastError as error:
        if is_passing(error):
            raise
        return  # this code cannot write to its log
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
    """Return the quarantine row of the execution, in force or not; see `held_in`."""
    item = yield Get(tables.MAIL, keys.QUARANTINE, keys.execution(tenant, run))
    return None if item is None else _read(item)


def held_in(log: Log) -> Generator[Effect, Any, Quarantined | None]:
    """Return the quarantine row of the execution, if it is in quarantine. `log` is loaded."""
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
    """Return True when an ended execution's redrive is in quarantine: workers crash on it before
    they write, so the log still has its end.
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
    """Return the tenant's readable quarantine rows, in force or not."""
    found = yield from _all_of(tenant)
    return [held for _, held in found if isinstance(held, Quarantined)]


def damaged(tenant: str) -> Generator[Effect, Any, list[tuple[str, HoldfastError]]]:
    """Return the executions whose quarantine item cannot be read, and why. They must not hide the
    others.
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
    """Return the quarantined executions. A log that cannot be read counts as not continued."""
    return [held for held in (yield from to_repair(tenant)) if not held.is_end]


def to_repair(tenant: str) -> Generator[Effect, Any, list[Quarantined]]:
    """Return the quarantined executions, and ended ones whose end may not have been reported."""
    found: list[Quarantined] = []
    for held in (yield from of_tenant(tenant)):
        still = yield from _still(held)
        if still is not None:
            found.append(still)
    return found


def forget_moved(tenant: str) -> NoResult:
    """Delete items whose execution has continued since."""
    for held in (yield from of_tenant(tenant)):
        # A worker may have quarantined the execution again in between: delete only the row that was
        # read.
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
    """Return the reason why the message is not sent again; None when `release` sends it."""
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
    """Return the name row of the execution, if the row is its own and TTL will not delete it
    soon.
    """
    body = held.body
    name = keys.name(held.tenant, str(body["workflow"]), str(body["name"]))
    row = yield Get(tables.MAIL, name, keys.ONLY)
    with reading("the row of a name"):
        is_own = row is not None and row["run"] == held.run
        return row if is_own and int(row["ttl"]) > now_ms // 1_000 + _NAME_SECONDS_MIN else None


def release(held: Quarantined) -> NoResult:
    """Send the message again, alone in its batch, with its count of deliveries at the beginning.

    The message names the last dead letters, so that the leases of their workers need not lapse
    first. For a start whose log has begun, a `recover` is sent instead: the start would find no
    work to do.
    """
    body, log = held.body, keys.execution(held.tenant, held.run)
    if not held.is_start or (yield Query(tables.EXECUTIONS, log, reverse=True, limit=1)):
        body = messages.recover(held.tenant, held.run)
    elif _has_name(held):
        now_ms = yield Clock()
        row = yield from _name_row(held, now_ms)
        if row is None:
            return  # `refusal` explains the case
        # The execution begins now, so its name is kept from now on. No other call writes to this
        # row: it exists, and only an execution with a log extends its lifetime; this execution has
        # no log.
        yield Put(tables.MAIL, {**row, "ttl": now_ms // 1_000 + NAME_RETENTION_SECONDS})
    yield from _send_again(held, body)


def release_to_stop(held: Quarantined) -> NoResult:
    """Release a start so that it begins its log and evaluates nothing. A stop can then be
    applied.
    """
    yield from _send_again(held, {**held.body, "held": True})


def _send_again(held: Quarantined, body: Mapping[str, Any]) -> NoResult:
    # An ended execution keeps all letters: one of them wrote the end, and only its message
    # publishes the end's event.
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
    the content.
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
    """Return the unreadable letters that a recent sweep has found: they are still in their
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
    """Return the description of an execution without a log, whose start message is in
    quarantine.
    """
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
    """Return the list row of an execution without a list entry. The start message has the most
    facts.
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
