"""The inbox of an execution: messages from outside. Each is stored with a condition, before a wake
is sent.

An inbox message is never deleted or marked. The state of the execution says whether it was applied:
a message for a wait that has ended has no effect. This module writes inbox messages and reads them
as facts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final, TypeAlias, assert_never

from holdfast.asl.program import Json
from holdfast.core import facts, migrating
from holdfast.core.bounds import FIELDS
from holdfast.core.cancelling import is_stopped_by
from holdfast.core.facts import Control, Fact
from holdfast.core.skipping import is_skipped_by
from holdfast.core.state import PAUSE_TIMERS, Awaiting, Execution
from holdfast.errors import HoldfastBug, UnknownKindError
from holdfast.limits import (
    CONTROL_RETENTION_SECONDS,
    EVENT_POINTERS_FROM,
    EVENT_RETENTION_SECONDS,
    MESSAGE_INPUT_BYTES_MAX,
)
from holdfast.runtime.effects import Effect, Get, GetBlob, Item, Put, PutBlob, Query
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD, Formats, require_format
from holdfast.runtime.storage.json_values import plain_text

FactsResult: TypeAlias = Generator[Effect, Any, list[Fact]]


# -- values too large for an item or a message -----------------------------------------------------


def stow(
    tenant: str, place: str, value: Json, inline_bytes_max: int = MESSAGE_INPUT_BYTES_MAX
) -> Generator[Effect, Any, dict[str, Any]]:
    """Return {"v": text} or {"ref": hash}: the value itself, or the name of the blob that holds it.

    Every value from outside is stored in this form. Raises RequestError HF243, HF244.
    """
    stowed, data = form_of(value, inline_bytes_max)
    if "ref" in stowed:
        yield PutBlob(keys.blob(tenant, place, stowed["ref"]), data)
    return stowed


def form_of(
    value: Json, inline_bytes_max: int = MESSAGE_INPUT_BYTES_MAX
) -> tuple[dict[str, Any], bytes]:
    """Return the same fields as `stow`, and the bytes of the blob to store. Raises RequestError
    HF243, HF244.
    """
    text = plain_text(value, "the value")
    data = text.encode()
    if len(data) <= inline_bytes_max:
        return {"v": text}, data
    return {"ref": hashlib.sha256(data).hexdigest()}, data


def unstow(tenant: str, place: str, stowed: Any) -> Generator[Effect, Any, Json]:
    """Return the value that `stow` has stored. Raises HoldfastBug for another form, and for a blob
    whose content does not have its hash.
    """
    with reading("a stored value"):
        if "v" in stowed:
            return _parsed(stowed["v"])
        digest = str(stowed["ref"])
        data = yield GetBlob(keys.blob(tenant, place, digest))
        if hashlib.sha256(data).hexdigest() != digest:
            raise HoldfastBug(f"the stored value {digest} has another hash")
        return _parsed(data)


def _parsed(text: Any) -> Json:
    value: Json = json.loads(text, parse_constant=_no_number)
    return value


def _no_number(name: str) -> None:
    raise ValueError(name)


# -- answers ---------------------------------------------------------------------------------------


def answer_in(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the answer itself, without the other attributes of the item."""
    return {name: item[name] for name in ("v", "ref", "error", "cause", "sh") if name in item}


def answer_facts(tenant: str, run: str, awaiting: Awaiting) -> FactsResult:
    """Return the facts of the stored answer, and of the heartbeat, to a callback or a person's
    task.
    """
    inbox = keys.inbox(tenant, run)
    found: list[Fact] = []
    if awaiting.kind == "activity" and not awaiting.is_begun:
        found += yield from taken_by_key(tenant, run, keys.taken(awaiting.entry, awaiting.attempt))
    item = yield Get(tables.MAIL, inbox, keys.answer(awaiting.entry, awaiting.attempt))
    if item is not None:
        answer = yield from _answer(tenant, run, awaiting.entry, awaiting.attempt, item)
        return [*found, answer]
    if awaiting.heartbeat_seconds is None:
        return found
    beat = yield Get(tables.MAIL, inbox, keys.heartbeat(awaiting.entry))
    if beat is not None:
        require_format(beat, "a heartbeat")
        with reading("a heartbeat"):
            found.append(facts.HeartbeatSeen(awaiting.entry, int(beat["at"])))
    return found


def answer_by_key(tenant: str, run: str, key: str) -> FactsResult:
    """Return the answer whose key the wake names: `t#<entry>.<attempt>`. For an activity also
    return the start of its task, because the wake for that start may still be in the queue.
    """
    item = yield Get(tables.MAIL, keys.inbox(tenant, run), key)
    if item is None:
        return []
    entry, attempt = _ticket(key)
    found: list[Fact] = []
    if "act" in item:
        found += yield from taken_by_key(tenant, run, keys.taken(entry, attempt))
    return [*found, (yield from _answer(tenant, run, entry, attempt, item))]


def _ticket(key: str) -> tuple[int, int]:
    """Return entry number and attempt of `t#<entry>.<attempt>` or `s#<entry>.<attempt>`."""
    with reading("a key of mail"):
        entry, _, attempt = key[2:].partition(".")
        return int(entry), int(attempt)


def taken_item(tenant: str, run: str, key: str, nonce: str, fields: Item) -> Item:
    """Return the item that records which poller has taken an activity's task. `worker` is the
    poller's name.
    """
    return {"pk": keys.inbox(tenant, run), "sk": key, FORMAT_FIELD: FORMAT, "w": nonce, **fields}


def taken_by_key(tenant: str, run: str, key: str) -> FactsResult:
    """Return the fact that a poller has taken the task, from the key that the wake names:
    `s#<entry>.<attempt>`.
    """
    item = yield Get(tables.MAIL, keys.inbox(tenant, run), key)
    if item is None:
        return []
    require_format(item, "the start of an activity's task")
    worker = item.get("worker")
    name = None if worker is None else str(worker)
    return [facts.ActivityStarted(*_ticket(key), name)]


def _answer(
    tenant: str, run: str, entry: int, attempt: int, item: Item
) -> Generator[Effect, Any, Fact]:
    require_format(item, "an answer")
    if "v" not in item and "ref" not in item:
        error, cause = item.get("error"), item.get("cause")
        return facts.FailedWith(
            entry,
            attempt,
            None if error is None else str(error),
            None if cause is None else str(cause),
        )
    output = yield from unstow(tenant, run, item)
    return facts.Succeeded(entry, attempt, output, str(item.get("by", "")))


# -- events ----------------------------------------------------------------------------------------


#: The attribute of a registration that says how often its execution had been retried.
RETRIES: Final = "rd"
#: The attribute that marks a registration whose execution has ended.
OVER: Final = "over"
#: The attribute of a registration that names its wait. The sender of an event uses it as a claim.
WAIT: Final = "wt"


def wait_of(awaiting: Awaiting) -> str:
    """Return the name of a wait. No later wait of its execution has this name: each state that is
    entered has another entry number, also after a retry of the execution.
    """
    return f"wait.{awaiting.entry}.{awaiting.attempt}"


def register(
    tenant: str, state: Execution, awaiting: Awaiting, now_ms: int, **marks: str
) -> Generator[Effect, Any, None]:
    """Store the registration of a wait for events. This comes before the read of the inbox, so that
    an event that is stored after the read finds the registration (R13).

    A registration with marks names no wait, because later waits keep it. Nor does one of an
    execution that may soon ask for pointers: a sender that has read it may be slow, and would then
    put no pointer.
    """
    ends_ms = awaiting.due_ms or now_ms + 1_000 * EVENT_RETENTION_SECONDS
    names_no_wait = marks or len(state.used_events) >= EVENT_POINTERS_FROM // 2
    yield Put(
        tables.MAIL,
        {
            "pk": keys.event(tenant, awaiting.event_name, awaiting.event_key),
            "sk": keys.registration(state.run),
            FORMAT_FIELD: FORMAT,
            RETRIES: state.redrives,
            "ttl": ends_ms // 1_000 + 86_400,
            **(marks if names_no_wait else {WAIT: wait_of(awaiting)}),
        },
    )


#: The formats of events. Code of format 1 does not know an event that is addressed to one
#: execution, and would give it to every execution that waits for it. Code of format 2 does not know
#: an event that fails a wait. The greater format makes older code refuse such an event.
EVENT_FORMATS: Final = Formats(oldest=1, newest=3, asked=1)
EVENT_MARK: Final[Mapping[str, int]] = {FORMAT_FIELD: 2}
FAILING_MARK: Final[Mapping[str, int]] = {FORMAT_FIELD: EVENT_FORMATS.newest}
#: The attribute of an event that names the only execution which may use it.
ADDRESSEE: Final = "to"
#: The value of `ADDRESSEE` in an event that an operator has dropped: no execution may use it any
#: longer.
DROPPED: Final = ""
#: The attribute of an event that had no addressee, and that an execution has claimed
#: (`event_claims.py`). Its value differs for each claim.
CLAIMED: Final = "cl"
#: How many executions of a key have had the event and used none, and one for the present addressee.
#: An event of one execution alone does not have it.
ADDRESSED: Final = "nth"
#: The attribute of an event that its sender addressed to one execution. Such an event is never
#: given to another execution.
DIRECT: Final = "own"


def addressed(item: Item, run: str) -> dict[str, str | int | bytes]:
    """Return the item of an event that only this execution may use."""
    mark = FAILING_MARK if "error" in item else EVENT_MARK
    return {**item, **mark, ADDRESSEE: run}


def registered(row: Item) -> str:
    """Return the execution of a registration."""
    return str(row["sk"]).removeprefix(keys.REGISTRATION_PREFIX)


def event_id(item: Item) -> str:
    return str(item["sk"]).removeprefix(keys.EVENT_PREFIX)


def place_of(item: Item) -> tuple[int, str]:
    """Return the event's place in the order in which executions use events."""
    return int(item["at"]), str(item["sk"])


def is_for(item: Item, run: str) -> bool:
    """Return True when the execution may use the event."""
    return item.get(ADDRESSEE, run) == run


def stored_events(
    tenant: str, event_name: str, event_key: str
) -> Generator[Effect, Any, list[Item]]:
    """Return the stored events of the name and key, also those for other executions."""
    partition = keys.event(tenant, event_name, event_key)
    items: list[Item] = yield Query(tables.MAIL, partition, begins_with=keys.EVENT_PREFIX)
    for item in items:
        require_format(item, "an event", EVENT_FORMATS)
    return items


def events_of(
    tenant: str, run: str, event_name: str, event_key: str
) -> Generator[Effect, Any, list[Item]]:
    """Return the stored events that the execution may use, including used and expired ones."""
    items = yield from stored_events(tenant, event_name, event_key)
    return [item for item in items if is_for(item, run)]


def is_unread(state: Execution, item: Item, now_ms: int) -> bool:
    """Return True when the execution may use the event, which is neither used nor expired."""
    with reading("an event"):
        is_expired = int(item["expires"]) <= now_ms
    return is_for(item, state.run) and not is_expired and event_id(item) not in state.used_events


def unread(state: Execution, items: Iterable[Item], now_ms: int) -> list[Item]:
    """Return the events that the execution may use, the earliest first.

    Used events stay stored. They are filtered before they are parsed: an execution that receives
    many events would otherwise parse all of them, and read the blobs of large ones, at each wait.
    """
    with reading("an event"):
        return sorted((one for one in items if is_unread(state, one, now_ms)), key=place_of)


def unread_for(
    state: Execution, awaiting: Awaiting, items: Iterable[Item], now_ms: int
) -> list[Item]:
    """Return the events that this wait of the execution may use, the earliest first."""
    found = unread(state, items, now_ms)
    return [item for item in found if state.takes_event_of(awaiting, place_of(item)[0])]


def unread_facts(
    tenant: str, state: Execution, awaiting: Awaiting, items: Iterable[Item], now_ms: int
) -> FactsResult:
    found: list[Fact] = []
    for item in unread_for(state, awaiting, items, now_ms):
        with reading("an event"):
            data: Json = None
            if "error" not in item:
                data = yield from unstow(tenant, "events", item)
            expires_ms = int(item["expires"])
        is_direct = ADDRESSEE in item and CLAIMED not in item
        claim = None if is_direct else str(item.get(CLAIMED, ""))
        failure = _word(item, "error"), _word(item, "cause")
        received = awaiting.entry, event_id(item), data, expires_ms, claim
        found.append(facts.EventReceived(*received, *failure))
    return found


# -- control ---------------------------------------------------------------------------------------


#: The kind of a control message that requests a retry. A message without a kind is a stop, and so
#: is a message of the kind PARENT, from a parent execution.
REDRIVE: Final = "redrive"
PARENT: Final = "parent"
PAUSE: Final = "pause"
RESUME: Final = "resume"
PRIORITY: Final = "priority"
BOUNDS: Final = "bounds"
SKIP: Final = "skip"
MIGRATE: Final = "migrate"
#: The format of these kinds of control messages. Code that does not know them would take each for a
#: stop. The format 2 makes that code refuse them.
_CONTROL_FORMAT: Final[Mapping[str, int]] = {
    **dict.fromkeys((PAUSE, RESUME, PRIORITY, BOUNDS, SKIP, MIGRATE), 2)
}
_CONTROL_FORMATS: Final = Formats(oldest=1, newest=2, asked=1)


def control_id(state: Execution | None, now_ms: int, chance: bytes) -> str:
    """Return an id for a control message that is greater than all ids which the state has applied.

    The host that created an applied id may have a clock that is ahead, or the same millisecond. A
    message with a smaller id would count as already applied and be lost.
    """
    applied_ms = 0 if state is None else int(state.last_control[:15] or 0)
    return f"{max(now_ms, applied_ms + 1):015d}{chance.hex()[:12]}"


def control_item(
    tenant: str, run: str, control_id: str, now_ms: int, fields: Item
) -> dict[str, str | int | bytes]:
    return {
        "pk": keys.inbox(tenant, run),
        "sk": keys.control(control_id),
        FORMAT_FIELD: _CONTROL_FORMAT.get(str(fields.get("kind", "")), FORMAT),
        "at": now_ms,
        "ttl": now_ms // 1_000 + CONTROL_RETENTION_SECONDS,
        **fields,
    }


def control_facts(tenant: str, state: Execution) -> FactsResult:
    """Return the control messages that the state has not applied and can still apply, by their
    ids.
    """
    return [fact for _, fact in (yield from stored_control(tenant, state))]


def stored_control(
    tenant: str, state: Execution
) -> Generator[Effect, Any, list[tuple[int, Control]]]:
    """Return the same as `control_facts`, each with the time at which it was stored. Not every id
    contains that time.
    """
    items: Iterable[Item] = yield Query(
        tables.MAIL, keys.inbox(tenant, state.run), begins_with=keys.CONTROL_PREFIX
    )
    found: list[tuple[int, Control]] = []
    is_paused = state.paused is not None
    for item in items:
        require_format(item, "control mail", _CONTROL_FORMATS)
        control_id = str(item["sk"]).removeprefix(keys.CONTROL_PREFIX)
        if control_id > state.last_control:
            with reading("control mail"):
                stored_ms = int(item["at"])
                if item.get("kind") == SKIP:
                    fact: Control = yield from _skip(tenant, state.run, control_id, item)
                elif item.get("kind") == MIGRATE:
                    fact = yield from _migrate(tenant, state.run, control_id, item)
                else:
                    fact = _control(control_id, item)
            if _is_open(state, fact, is_paused=is_paused):
                found.append((stored_ms, fact))
                # A pause and its resume may both be unread. The resume can be applied only after
                # the pause, so remember that the pause comes first.
                is_paused = _is_paused_after(fact, is_paused=is_paused)
    return found


def _is_open(state: Execution, fact: Control, *, is_paused: bool) -> bool:
    """Return True when the state can still apply the control message.

    A retry can be applied only after the end of the execution. A stop that repeats another one is
    never applied, nor is a second pause, or a resume of an execution that is not paused. If such a
    message counted as unread, workers would read it again without end.
    """
    match fact:
        case facts.StopRequested():
            return is_stopped_by(state, fact)
        case facts.RedriveRequested():
            return bool(state.resting)
        case facts.PauseRequested():
            return not is_paused and not state.is_ended and state.stopping is None
        case facts.ResumeRequested():
            return is_paused
        case facts.PriorityRequested():
            return not state.is_ended
        case facts.BoundsRequested():
            return not state.is_ended and state.frame_of(fact.entry) is not None
        case facts.SkipRequested():
            return is_skipped_by(state, fact)
        case facts.MigrateRequested():
            return migrating.is_open(state, fact)
        case _:
            assert_never(fact)


def _is_paused_after(fact: Control, *, is_paused: bool) -> bool:
    match fact:
        case facts.PauseRequested():
            return True
        case facts.ResumeRequested() | facts.StopRequested():
            return False
        case (
            facts.RedriveRequested()
            | facts.PriorityRequested()
            | facts.BoundsRequested()
            | facts.SkipRequested()
            | facts.MigrateRequested()
        ):
            return is_paused
        case _:
            assert_never(fact)


def _control(control_id: str, item: Item) -> Control:
    kind = item.get("kind")
    if kind == REDRIVE:
        words = (_word(item, "reason"), _word(item, "by"))
        return facts.RedriveRequested(control_id, *words, int(item.get("round", 0)))
    if kind == PAUSE:
        reason, by = str(item["reason"]), str(item["by"])
        timers = next(one for one in PAUSE_TIMERS if one == item["timers"])
        return facts.PauseRequested(control_id, reason, by, timers)
    if kind == RESUME:
        return facts.ResumeRequested(control_id, str(item["reason"]), str(item["by"]))
    if kind == PRIORITY:
        reason, by = str(item["reason"]), str(item["by"])
        return facts.PriorityRequested(control_id, int(item["priority"]), reason, by)
    if kind == BOUNDS:
        return facts.BoundsRequested(control_id, int(item["entry"]), bounds_in(item))
    if kind not in {None, PARENT}:
        # A newer release has written this kind of message. Without the refusal this code would take
        # it for a stop and end the execution.
        raise UnknownKindError("control mail", str(kind))
    return facts.StopRequested(
        control_id,
        _word(item, "error"),
        _word(item, "cause"),
        by_parent=kind == PARENT,
        now=bool(item.get("now", 0)),
    )


def bounds_in(item: Item) -> dict[str, int | float]:
    """Return the bounds of a map run that a control message changes."""
    numbers = json.loads(str(item["bounds"]))
    return {name: numbers[name] for name in FIELDS if name in numbers}


def _skip(
    tenant: str, run: str, control_id: str, item: Item
) -> Generator[Effect, Any, facts.SkipRequested]:
    output = yield from unstow(tenant, run, item)
    frame, entered = str(item["frame"]), int(item["entered"])
    reason, by = str(item["reason"]), str(item["by"])
    return facts.SkipRequested(control_id, frame, entered, output, reason, by)


def _migrate(
    tenant: str, run: str, control_id: str, item: Item
) -> Generator[Effect, Any, facts.MigrateRequested]:
    move: Any = yield from unstow(tenant, run, item)
    reason, by = str(item["reason"]), str(item["by"])
    return facts.MigrateRequested(
        control_id, move["from"], move["to"], move["visits"], move["plan"], reason, by
    )


def _word(item: Item, name: str) -> str | None:
    return str(item[name]) if name in item else None
