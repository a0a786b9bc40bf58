"""The bodies of work messages. Each one contains its format. A worker returns a message of a newer
format to the queue unread.

A message only wakes an execution; it decides nothing. `hint` says how much of the log to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from holdfast.errors import HoldfastBug, NewerFormatError
from holdfast.lazy_dataclass import dataclass
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.formats import FORMAT_FIELD
from holdfast.runtime.storage.json_values import is_unicode

FORMAT: Final = 1
#: The format of the message that starts a fork. Older code would begin the execution from its first
#: state. With this format it leaves the message to newer code.
FORMAT_FORK: Final = 2
#: Format 3 has the message kinds `archive`, `remind` and `sweep_starts`, and the start of a fork
#: that continues on another definition. Older code refuses a message of this format, because it
#: would handle it wrongly.
FORMAT_KINDS: Final = 3
_FORMAT_NEWEST: Final = FORMAT_KINDS

START: Final = "start"
WAKE_TIMER: Final = "wake.timer"
WAKE_MAIL: Final = "wake.mail"
GO: Final = "go"
RECOVER: Final = "recover"
#: A gate (a limit) has let a waiting attempt begin.
WAKE_GRANT: Final = "wake.grant"
#: Lets attempts in the queue of a gate begin. The message names no execution.
TICK: Final = "tick"
#: A nominal time of a schedule has come. The message names no execution.
SCHEDULE: Final = "schedule"
#: A worker processes a page of due rows for the sweeper. The message names no execution.
SWEEP: Final = "sweep"
#: A worker processes a shard of rows of starts for the sweeper. The message names no execution.
SWEEP_STARTS: Final = "sweep_starts"
#: A worker archives a page of ended executions. The message names no execution.
ARCHIVE: Final = "archive"
#: A reminder of an open question is due.
REMIND: Final = "remind"
#: The kinds of messages that belong to no execution. If such a message is lost, the gate, the
#: schedule or the next sweep sends it again.
OF_NO_EXECUTION: Final = frozenset({TICK, SCHEDULE, SWEEP, SWEEP_STARTS, ARCHIVE})
#: In a wake, this key announces events: the worker then reads the stored events of every wait for
#: an event.
EVENT_MAIL: Final = "e"


@dataclass(frozen=True, slots=True)
class Hint:
    """The newest record and the newest snapshot that the sender of the message knew."""

    sequence: int
    snapshot: int


def _body(kind: str, tenant: str, run: str, hint: Hint | None, **fields: Any) -> dict[str, Any]:
    body = {FORMAT_FIELD: FORMAT, "k": kind, "t": tenant, "run": run, **fields}
    return body if hint is None else {**body, "hint": [hint.sequence, hint.snapshot]}


def start(tenant: str, run: str, **fields: Any) -> dict[str, Any]:
    """Return a start message. `fields`: workflow, definition, name?, input or ref, t0, of?,
    released?, held?, priority?

    `held`: the worker begins the log, but evaluates no state before it has read the inbox.
    """
    return _body(START, tenant, run, None, **fields)


def fork(tenant: str, run: str, *, is_moved: bool, **fields: Any) -> dict[str, Any]:
    """Return the start message of an execution that begins as a copy of another one. `fields` are
    those of `start`; `input` is the request of the fork. With `is_moved` the fork continues on
    another definition. The message then has a newer format: older code would ignore the move and
    run the old definition.
    """
    number = FORMAT_KINDS if is_moved else FORMAT_FORK
    return {**start(tenant, run, **fields), FORMAT_FIELD: number, "fork": True}


def wake_timer(tenant: str, run: str, entry: int, due_ms: int, hint: Hint | None) -> dict[str, Any]:
    return _body(WAKE_TIMER, tenant, run, hint, entry=entry, due=due_ms)


def wake_mail(tenant: str, run: str, key: str) -> dict[str, Any]:
    return _body(WAKE_MAIL, tenant, run, None, key=key)


def wake_event(tenant: str, run: str, **event: Any) -> dict[str, Any]:
    """Return the message that wakes an execution for an event. `event` is id, at, name and key of
    the stored event: a worker that finds the execution ended lists the event as unused. With
    `claimed` the event has a claim for this execution: a worker that does not use it gives it on.
    """
    return {**wake_mail(tenant, run, EVENT_MAIL), "event": event}


def wake_child_ended(tenant: str, run: str, key: str, lane: int | None) -> dict[str, Any]:
    """Return the message that wakes a parent for the end of a child. With the lane of a distributed
    Map's child, a worker whose log has that end already drops the message.
    """
    body = wake_mail(tenant, run, key)
    return body if lane is None else {**body, "lane": lane}


def go(tenant: str, run: str, owner: str, hint: Hint) -> dict[str, Any]:
    return _body(GO, tenant, run, hint, **{"from": owner})


def wake_grant(tenant: str, run: str, **fields: Any) -> dict[str, Any]:
    """Return a wake for an attempt that a gate has let in. `fields`: entry, attempt, gate, own (the
    owner of the permit, "" for a token), until (of a token).
    """
    return _body(WAKE_GRANT, tenant, run, None, **fields)


def tick(gate: str, chain: int) -> dict[str, Any]:
    """Return a message that serves the queue of a gate. `chain` is its number: when a newer one has
    been sent, this one is dropped.
    """
    return {FORMAT_FIELD: FORMAT, "k": TICK, "t": keys.TENANT_DEFAULT, "gate": gate, "chain": chain}


def sweep(shard: int, after: str, until: str, now_ms: int) -> dict[str, Any]:
    """Return a message to process due rows of a shard: those after the key `after`, up to `until`.
    It has a newer format, so that older code, which does not know it, returns it to the queue.
    """
    return {
        FORMAT_FIELD: FORMAT_FORK,
        "k": SWEEP,
        "t": keys.TENANT_DEFAULT,
        "shard": shard,
        "after": after,
        "until": until,
        "at": now_ms,
    }


def sweep_whole(shard: int, until: str, now_ms: int) -> dict[str, Any]:
    """Return a message to hand out all due rows of a shard, page by page."""
    return {**sweep(shard, keys.BEFORE_DUE_ROWS, until, now_ms), "whole": True}


def sweep_starts(shard: int, now_ms: int) -> dict[str, Any]:
    """Return a message to process the rows of starts in a shard that are due."""
    return {
        FORMAT_FIELD: FORMAT_KINDS,
        "k": SWEEP_STARTS,
        "t": keys.TENANT_DEFAULT,
        "shard": shard,
        "at": now_ms,
    }


def archive(shard: int, after: str, until: str, now_ms: int) -> dict[str, Any]:
    """Return the message that requests the archiving of a page: the rows of ended executions after
    one key, up to another.
    """
    page = sweep(shard, after, until, now_ms)
    return {**page, FORMAT_FIELD: FORMAT_KINDS, "k": ARCHIVE}


def remind(tenant: str, run: str, **fields: Any) -> dict[str, Any]:
    """Return a message to remind of a question. `fields`: entry, attempt, ask (the sort key of the
    question's row), due (its deadline), ahead (how long before the deadline, in milliseconds).
    """
    return {**_body(REMIND, tenant, run, None, **fields), FORMAT_FIELD: FORMAT_KINDS}


def schedule(tenant: str, name: str, due_ms: int) -> dict[str, Any]:
    return {FORMAT_FIELD: FORMAT, "k": SCHEDULE, "t": tenant, "schedule": name, "due": due_ms}


def recover(tenant: str, run: str, of: tuple[str, ...] = (), released: int = 0) -> dict[str, Any]:
    """Return a message that recovers one execution.

    `of` are the ids of the messages that it replaces: dead letters, a message whose work continues
    in the queue for single messages, and messages whose workers handed an attempt on. `released` is
    the number of them that do not count as rounds of a dead letter.
    """
    return _body(RECOVER, tenant, run, None, of=list(of), released=released)


def renew(tenant: str, run: str, of: tuple[str, ...] = (), released: int = 0) -> dict[str, Any]:
    """Return a message that requests a new snapshot without evaluating a state, because the
    evaluation may have crashed workers.
    """
    return {**recover(tenant, run, of, released), "held": True}


def require_readable(body: Any) -> Mapping[str, Any]:
    """Return the message. Raises NewerFormatError for a newer format, HoldfastBug for a message
    that Holdfast did not send.
    """
    if not isinstance(body, dict):
        raise HoldfastBug("a work message is not a JSON object")
    found = body.get(FORMAT_FIELD)
    if isinstance(found, int) and found > _FORMAT_NEWEST:
        raise NewerFormatError("a work message", found, _FORMAT_NEWEST)
    # The error message must not quote the content. It was written by another sender, it may be
    # private, and many people read logs.
    if type(found) is not int or found < FORMAT:
        raise HoldfastBug("a work message has no format number")
    kind = body.get("k")
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise HoldfastBug("a work message is of no kind that there is")
    for name, is_right in fields:
        if not is_right(body.get(name)):
            raise HoldfastBug(f"a work message of kind {kind} has no usable `{name}`")
    return body


# -- required fields of each kind ------------------------------------------------------------------

ValueCheck: TypeAlias = Callable[[Any], bool]

#: The greatest time or number in a message. Times and numbers become parts of keys, which have 15
#: digits for them.
_NUMBER_MAX: Final = 10**15 - 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and is_unicode(value)


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _NUMBER_MAX


def _is_hint(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_position, value))


def _is_position(value: Any) -> bool:
    return _is_number(value) or (type(value) is int and value == -1)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_stowed(value: Any) -> bool:
    return isinstance(value, dict) and _is_text(value.get("v", value.get("ref")))


def _optional(is_right: ValueCheck) -> ValueCheck:
    return lambda value: value is None or is_right(value)


def _holding(**fields: ValueCheck) -> ValueCheck:
    """Return a check for an object with these fields, and any others."""
    return lambda value: (
        isinstance(value, dict)
        and all(is_right(value.get(name)) for name, is_right in fields.items())
    )


_COMMON: Final[Mapping[str, ValueCheck]] = {
    "t": lambda value: _is_text(value) and keys.is_tenant(value),
    "run": lambda value: _is_text(value) and keys.is_run(value),
    "hint": _optional(_is_hint),
    "of": _optional(_are_texts),
    "released": _optional(_is_number),
}
_ORIGIN: Final = _holding(
    execution_arn=_is_text,
    execution_name=_is_text,
    state_machine_arn=_is_text,
    state_machine_name=_is_text,
    role_arn=_is_text,
    type=lambda value: value in ("STANDARD", "EXPRESS"),
)
_OWN: Final[Mapping[str, Mapping[str, ValueCheck]]] = {
    START: {
        "workflow": _is_text,
        "definition": _is_text,
        "input": _is_stowed,
        "t0": _is_number,
        "name": _optional(_is_text),
        "held": _optional(lambda value: value is True),
        "fork": _optional(lambda value: value is True),
        "priority": _optional(_is_number),
        "origin": _optional(_ORIGIN),
        "parent": _optional(_holding(run=_is_text, entry=_is_number, attempt=_is_number)),
    },
    WAKE_TIMER: {"entry": _is_position, "due": _is_number},
    WAKE_MAIL: {
        "key": _is_text,
        "lane": _optional(_is_number),
        "event": _optional(_holding(id=_is_text, at=_is_number, name=_is_text, key=_is_text)),
    },
    GO: {"from": _is_text},
    WAKE_GRANT: {
        "entry": _is_number,
        "attempt": _is_number,
        "gate": _is_text,
        "own": _is_text,
        "until": _is_number,
    },
    REMIND: {
        "entry": _is_number,
        "attempt": _is_number,
        "ask": _is_text,
        "due": _is_number,
        "ahead": _is_number,
    },
    RECOVER: {"held": _optional(lambda value: value is True), "from": _optional(_is_text)},
}
_TICK: Final[Mapping[str, ValueCheck]] = {
    "t": _COMMON["t"],
    "gate": _is_text,
    "chain": _is_number,
}
_SCHEDULE: Final[Mapping[str, ValueCheck]] = {
    "t": _COMMON["t"],
    "schedule": _is_text,
    "due": _is_number,
}
_SWEEP: Final[Mapping[str, ValueCheck]] = {
    "t": _COMMON["t"],
    "shard": _is_number,
    "after": _is_text,
    "until": _is_text,
    "at": _is_number,
    "whole": _optional(lambda value: value is True),
}
_SWEEP_STARTS: Final = {name: _SWEEP[name] for name in ("t", "shard", "at")}
_FIELDS: Final = {
    **{kind: tuple({**_COMMON, **own}.items()) for kind, own in _OWN.items()},
    TICK: tuple(_TICK.items()),
    SCHEDULE: tuple(_SCHEDULE.items()),
    SWEEP: tuple(_SWEEP.items()),
    SWEEP_STARTS: tuple(_SWEEP_STARTS.items()),
    ARCHIVE: tuple(_SWEEP.items()),
}


def hint_of(body: Mapping[str, Any]) -> Hint | None:
    hint = body.get("hint")
    return None if hint is None else Hint(hint[0], hint[1])


def replaced_by(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids of the messages that this message replaces; most of them are dead letters."""
    return tuple(body.get("of") or ())


def released_of(body: Mapping[str, Any]) -> int:
    """Return how many of the replaced messages do not count as rounds of a dead letter. Leases that
    were taken under them may still be taken over. These messages are dead letters from before a
    release from quarantine, and messages whose work continues in the queue for single messages.
    """
    return int(body.get("released") or 0)
