"""Keyed workflows: at most one execution of a workflow runs for each business key.

The problem: an event, two callers and a worker may want to start an execution for one key at the
same time, and the execution that has the key may end at any moment. No event may be lost, and none
may be used twice.

The row of a key, `T#key#WORKFLOW#hash`, names the execution that has it. It changes by conditional
writes that count in `n`. It holds the start message too, so that a later request can send it again
when the first one crashed before it was sent.

    take      IF no execution has the key, or the log of the one that has it has ended
    release   at the end, IF this execution has the key

Events of the name in `starts_on` are addressed to one execution:

    API     take or find the execution ── put the event, addressed to it ── read its log: has it
            ended without the event? Then take the key again, and address the event anew.
    worker  commit the end ── read the events of the key: is one addressed to this execution and
            unused? Then take the key for the next execution, and address the event to it.

Each side writes before it reads, so an event that comes with the end is found by one of the two.
An event is used when the log of its execution says so; an ended log does not change, so an event
that is addressed anew was used by none. (A retry continues an ended log: it holds the key for
`RETRY_HOLD_MS` first, and is refused when another execution has it.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core.state import Execution
from holdfast.errors import HoldfastError, RequestError, is_damage
from holdfast.limits import (
    RACES_MAX,
    RECORD_RETENTION_SECONDS,
    START_INPUT_BYTES_MAX,
    START_RESENT_SECONDS_MAX,
)
from holdfast.runtime import inbox, messages, pending_starts
from holdfast.runtime.commands.fields import hash_of
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.effects import (
    Clock,
    Condition,
    Effect,
    Get,
    Item,
    Message,
    NoResult,
    Put,
    Send,
    Update,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.codec import reading
from holdfast.runtime.storage.definitions import Definition
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log
from holdfast.sealed import hidden

#: A retry is applied within seconds. Until then the execution keeps its key, although its log has
#: ended.
RETRY_HOLD_MS: Final = 15 * 60_000


@dataclass(frozen=True, slots=True)
class KeyRule:
    """A keyed workflow, as the compiler's map describes it."""

    workflow: str
    definition: Definition
    parameter: str
    starts_on: str | None
    keeps_unread: bool

    def slot(self, tenant: str, data: Any) -> KeySlot:
        """Return the place of the key in an input. Raises RequestError HF202."""
        return KeySlot(tenant, self, keys.require_business_key(data[self.parameter]))


@dataclass(frozen=True, slots=True)
class KeySlot:
    """One key of a keyed workflow, which one execution has at a time."""

    tenant: str
    rule: KeyRule
    key: str

    @property
    def partition(self) -> str:
        return keys.slot(self.tenant, self.rule.workflow, self.key)


def rule_of(workflow: str, definition: Definition) -> KeyRule | None:
    found = definition.source_map.get("keyed")
    if found is None:
        return None
    is_kept = found["unread"] == "next"
    return KeyRule(workflow, definition, found["parameter"], found.get("starts_on"), is_kept)


def rule_for(known: Lookup, workflow: str) -> KeyRule | None:
    """Return the rule of a deployed workflow; None when it has no key."""
    definition = known.workflows.get(workflow)
    return None if definition is None else rule_of(workflow, definition)


def started_by(known: Lookup, event_name: Any) -> KeyRule | None:
    """Return the workflow that the event starts."""
    for workflow, definition in known.workflows.items():
        rule = rule_of(workflow, definition)
        if rule is not None and rule.starts_on == event_name:
            return rule
    return None


# -- the row of a key ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The execution that has the key. `body`: its start message, None once its log has begun.
    `input_hash` tells whether another start has the same input.
    """

    run: str
    body: Mapping[str, Any] | None
    input_hash: str


def take(
    known: Lookup, slot: KeySlot, body: Mapping[str, Any], data: Json
) -> Generator[Effect, Any, KeyOwner]:
    """Give the key to the execution of the start message `body`, whose input is `data`, unless
    another execution has it. Return the execution that has it.
    """
    run, digest = str(body["run"]), hash_of(hidden(data))
    row: Item | None = yield Get(tables.MAIL, slot.partition, keys.ONLY)
    for _ in range(RACES_MAX):
        now_ms = yield Clock()
        owner = None if row is None else (yield from _owner(known, slot.tenant, row, now_ms))
        if owner is not None:
            return owner
        fields: dict[str, str | int] = {
            "run": run,
            "t0": int(body["t0"]),
            "ih": digest,
            "body": json.dumps(body, ensure_ascii=False, separators=(",", ":")),
        }
        written = yield _change(slot, row, fields, ("until",))
        if written.is_done:
            return KeyOwner(run, body, digest)
        row = written.item or None
        if row is not None and row.get("run") == run:  # the answer of the first write was lost
            return KeyOwner(run, body, digest)
    raise _busy(slot)


def _change(
    slot: KeySlot, row: Item | None, fields: Mapping[str, str | int], removed: tuple[str, ...]
) -> Update:
    """Return the write that gives the key to an execution, if the row is still as it was read."""
    number = 0 if row is None else int(row["n"])
    return Update(
        tables.MAIL,
        slot.partition,
        keys.ONLY,
        put={FORMAT_FIELD: FORMAT, "key": slot.key, **fields},
        add={"n": 1},
        remove=("ttl", *removed),
        where=(Condition("n", "=", number, or_absent=row is None),),
    )


def _owner(
    known: Lookup, tenant: str, row: Item, now_ms: int
) -> Generator[Effect, Any, KeyOwner | None]:
    """Return the execution that has the key; None when it has ended, or never began."""
    if "run" not in row:
        return None
    run, digest = str(row["run"]), str(row["ih"])
    state = yield from _state_of(known, tenant, run)
    if state is None:
        is_lost = now_ms - int(row["t0"]) > START_RESENT_SECONDS_MAX * 1_000
        return None if is_lost else KeyOwner(run, json.loads(str(row["body"])), digest)
    is_over = state.is_ended and int(row.get("until", 0)) <= now_ms
    return None if is_over else KeyOwner(run, None, digest)


def _state_of(known: Lookup, tenant: str, run: str) -> Generator[Effect, Any, Execution | None]:
    """Return the state; None without a log. A damaged log keeps its key: `doctor` reports it."""
    log = known.log(tenant, run)
    try:
        yield from log.load()
    except HoldfastError as error:
        if not is_damage(error):
            raise
    return log.state


def release(slot: KeySlot, run: str, now_ms: int) -> NoResult:
    """Take the key from the execution, if it has it."""
    yield Update(
        tables.MAIL,
        slot.partition,
        keys.ONLY,
        put={"ttl": now_ms // 1_000 + START_RESENT_SECONDS_MAX},
        add={"n": 1},
        remove=("run", "body"),
        where=(Condition("run", "=", run), Condition("until", "<=", now_ms, or_absent=True)),
    )


def hold_for_retry(known: Lookup, tenant: str, state: Execution) -> NoResult:
    """Keep or take the key for an ended execution that is about to continue. Raises RequestError
    HF561 when another execution has the key.
    """
    rule = rule_for(known, state.workflow)
    key = None if rule is None else (yield from _key_of(tenant, state.run))
    if rule is None or key is None:
        return
    slot = KeySlot(tenant, rule, key)
    for _ in range(RACES_MAX):
        row: Item | None = yield Get(tables.MAIL, slot.partition, keys.ONLY)
        now_ms = yield Clock()
        owner = None if row is None else (yield from _owner(known, tenant, row, now_ms))
        if owner is not None and owner.run != state.run:
            raise RequestError(
                "HF561",
                f"execution {owner.run} runs for the key {key!r:.90} of {rule.workflow}",
                status=409,
                help="stop that one first, or send it what is left to do",
            )
        until_ms = now_ms + RETRY_HOLD_MS
        fields = {"run": state.run, "t0": state.started_ms, "ih": "", "until": until_ms}
        written = yield _change(slot, row, fields, ("body",))
        if written.is_done:
            return
    raise _busy(slot)


def _key_of(tenant: str, run: str) -> Generator[Effect, Any, str | None]:
    row = yield Get(tables.MAIL, keys.inbox(tenant, run), keys.BUSINESS_KEY)
    return None if row is None else str(row["key"])


def _busy(slot: KeySlot) -> RequestError:
    return RequestError(
        "HF562",
        f"executions of {slot.rule.workflow} with the key {slot.key!r:.90} begin and end too fast",
        status=503,
        help="send the request again",
    )


# -- starting --------------------------------------------------------------------------------------


def put_key(slot: KeySlot, run: str) -> NoResult:
    """Store the key beside the execution, before its start message is sent: its end needs it."""
    partition = keys.inbox(slot.tenant, run)
    row: Item = {"pk": partition, "sk": keys.BUSINESS_KEY, FORMAT_FIELD: FORMAT}
    yield Put(tables.MAIL, {**row, "key": slot.key})


def running(known: Lookup, slot: KeySlot, chance: bytes) -> Generator[Effect, Any, str]:
    """Return the execution that runs for the key. Start one when none does."""
    tenant, rule = slot.tenant, slot.rule
    data = known.types.normalise_input(tenant, rule.workflow, {rule.parameter: slot.key})
    yield from known.programs.store(tenant, rule.definition)
    now_ms = yield Clock()
    run = keys.mint_run(tenant, now_ms, chance, known.keys.secret)
    stowed = yield from inbox.stow(tenant, run, data, START_INPUT_BYTES_MAX)
    names = {"workflow": rule.workflow, "definition": rule.definition.hash}
    wanted = messages.start(tenant, run, **names, t0=now_ms, input=stowed)
    owner = yield from take(known, slot, wanted, data)
    yield from begin(slot, owner)
    return owner.run


def begin(slot: KeySlot, owner: KeyOwner) -> NoResult:
    """Send the start message of the execution that has the key, unless its log has begun: the
    request that took the key may have crashed.
    """
    if owner.body is not None:
        yield from put_key(slot, owner.run)
        yield from pending_starts.guard(owner.body)
        yield Send((Message(owner.body),))


# -- events ----------------------------------------------------------------------------------------


def address(known: Lookup, slot: KeySlot, item: Item, chance: bytes) -> Generator[Effect, Any, str]:
    """Return the execution that a stored event is for. See the top of this file: the execution may
    have ended before the event was stored, and then the next one gets it.
    """
    event_id = str(item["sk"]).removeprefix(keys.EVENT_PREFIX)
    run = str(item[inbox.ADDRESSEE])
    for number in range(RACES_MAX):
        state = None if run == "" else (yield from _state_of(known, slot.tenant, run))
        if state is None or not state.is_ended or event_id in state.used_events:
            return run
        another = hashlib.sha256(chance + bytes([number])).digest()[:8]
        next_run = yield from running(known, slot, another)
        if next_run == run:  # it is about to be retried
            return run
        changed = yield from _change_addressee(item, run, next_run)
        run = str(changed[inbox.ADDRESSEE])
    raise _busy(slot)


def _change_addressee(item: Item, before: str, after: str) -> Generator[Effect, Any, Item]:
    written = yield Update(
        tables.MAIL,
        str(item["pk"]),
        str(item["sk"]),
        put={inbox.ADDRESSEE: after},
        where=(Condition(inbox.ADDRESSEE, "=", before),),
    )
    found: Item = written.item
    return found


# -- the end ---------------------------------------------------------------------------------------


def at_end(known: Lookup, log: Log) -> NoResult:
    """Release the key of an ended execution. Events that it has not used go to the next execution,
    which this starts, or are dropped, as the workflow says.
    """
    assert log.state is not None
    definition = yield from known.programs.fetch(log.tenant, log.state.definition)
    old = rule_of(log.state.workflow, definition)
    key = yield from _key_of(log.tenant, log.run)
    if old is None or key is None:
        return
    rule = rule_for(known, old.workflow) or old
    slot, now_ms = KeySlot(log.tenant, rule, key), (yield Clock())
    unread = yield from _unread(log, old, key, now_ms)
    if unread and rule.keeps_unread and rule.starts_on == old.starts_on:
        chance = hashlib.sha256(log.run.encode()).digest()[:8]
        run = yield from running(known, slot, chance)
        for item in unread:
            yield from _change_addressee(item, log.run, run)
        yield Send((Message(messages.wake_mail(log.tenant, run, messages.EVENT_MAIL)),))
    else:
        for item in unread:
            yield from _change_addressee(item, log.run, "")
        yield from release(slot, log.run, now_ms)
    yield Update(
        tables.MAIL,
        keys.inbox(log.tenant, log.run),
        keys.BUSINESS_KEY,
        put={"ttl": now_ms // 1_000 + RECORD_RETENTION_SECONDS},
    )


def _unread(log: Log, rule: KeyRule, key: str, now_ms: int) -> Generator[Effect, Any, list[Item]]:
    """Return the unexpired events that are addressed to the execution, and that it has not used."""
    assert log.state is not None
    if rule.starts_on is None:
        return []
    items = yield from inbox.events_of(log.tenant, log.run, rule.starts_on, key)
    used = log.state.used_events
    with reading("an event"):
        return [
            item
            for item in items
            if item.get(inbox.ADDRESSEE) == log.run
            and int(item["expires"]) > now_ms
            and str(item["sk"]).removeprefix(keys.EVENT_PREFIX) not in used
        ]
