"""Keyed workflows: at most one execution of a workflow runs for each business key.

The problem: an event, two callers and a worker may want to start an execution for one key at the
same time, and the execution that has the key may end at any moment. No event may be lost, and none
may be used twice.

The row of a key, `T#key#WORKFLOW#hash`, names the execution that has it. It changes by conditional
writes that increment `n`. The row also holds the start message, so that a later request can send it
again if the process that took the key crashed before it sent the message.

    take      IF no execution has the key, or the log of the one that has it has ended
    release   at the end, IF this execution has the key

The log of that execution decides whether it still has the key, by this rule alone (`_owner`):

    no log                    yes: its start is under way; no, when that start can no longer arrive
    open, or damaged          yes
    ended                     no, unless a retry holds the key

**A retry** continues an ended log. The API, and then the worker that commits the retry, write into
the row how often the execution had been retried (`held`) and a time (`until`). The hold counts
while the log has ended, has that number of retries, and the time is not over. So the commit of the
retry ends the hold, and the next end releases the key as usual:

    12:00:00  E1 ends, retries 0            no execution has the key
    12:01:00  the API: held 0, until 12:17  E1 has it; an event is refused with HF562 (later)
    12:01:01  a worker: held 0 again, and the record of the retry
              retries 1, open               E1 has it because its log is open
    12:02:00  E1 ends                       held 0 is not 1: no execution has the key

If another execution has the key by then, the worker does not carry out the retry. `keyed_events.py`
says how events find their execution.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from holdfast.asl.program import Json
from holdfast.core.state import Execution
from holdfast.errors import FormatError, HoldfastError, RequestError, ServiceFault, is_damage
from holdfast.limits import (
    RACES_MAX,
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
from holdfast.runtime.storage.definitions import Definition
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.sealed import hidden

#: How long the key of an ended execution is reserved for its retry. A worker has 15 minutes for the
#: message of the retry; the last minute allows for clocks that differ.
RETRY_HOLD_MS: Final = 16 * 60_000


@dataclass(frozen=True, slots=True)
class KeyRule:
    """A keyed workflow, as the source map of its definition describes it."""

    workflow: str
    definition: Definition
    parameter: str
    starts_on: str | None
    keeps_unread: bool

    def slot(self, tenant: str, data: Any) -> KeySlot:
        """Return the key that the input contains. Raises RequestError HF202."""
        return KeySlot(tenant, self, keys.require_business_key(data[self.parameter]))


@dataclass(frozen=True, slots=True)
class KeySlot:
    """One business key of a keyed workflow. At most one execution has it at a time."""

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


def started_by(known: Lookup, event_name: Any) -> list[KeyRule]:
    """Return the keyed workflows that the event starts, by name."""
    rules = (rule_of(workflow, one) for workflow, one in sorted(known.workflows.items()))
    return [rule for rule in rules if rule is not None and rule.starts_on == event_name]


# -- the row of a key ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """The execution that has the key.

    * `body`: its start message; None when its log has begun.
    * `input_hash`: says whether another start has the same input.
    * `is_new`: the execution got the key just now.
    * `is_held`: it has ended, and a retry of it is under way.
    """

    run: str
    body: Mapping[str, Any] | None
    input_hash: str
    is_new: bool = False
    is_held: bool = False


def take(
    known: Lookup, slot: KeySlot, body: Mapping[str, Any], data: Json
) -> Generator[Effect, Any, KeyOwner]:
    """Give the key to the execution of the start message `body`, with the input `data`, unless
    another execution has the key. Return the execution that has it.
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
        written = yield _change(slot, row, fields, ("ttl", "held", "until"))
        if written.is_done:
            return KeyOwner(run, body, digest, is_new=True)
        row = written.item or None
        # The first write was stored, but its answer was lost. So the key belongs to this start.
        if row is not None and row.get("run") == run:
            return KeyOwner(run, body, digest)
    raise busy(slot)


def find_owner(known: Lookup, slot: KeySlot) -> Generator[Effect, Any, KeyOwner | None]:
    """Return the execution that has the key now."""
    row: Item | None = yield Get(tables.MAIL, slot.partition, keys.ONLY)
    now_ms = yield Clock()
    return None if row is None else (yield from _owner(known, slot.tenant, row, now_ms))


def _change(
    slot: KeySlot, row: Item | None, fields: Mapping[str, str | int], removed: tuple[str, ...]
) -> Update:
    """Return the write that gives the key to an execution, if the row has not changed since it was
    read.
    """
    number = 0 if row is None else int(row["n"])
    return Update(
        tables.MAIL,
        slot.partition,
        keys.ONLY,
        put={FORMAT_FIELD: FORMAT, "key": slot.key, **fields},
        add={"n": 1},
        remove=removed,
        where=(Condition("n", "=", number, or_absent=row is None),),
    )


def _owner(
    known: Lookup, tenant: str, row: Item, now_ms: int
) -> Generator[Effect, Any, KeyOwner | None]:
    """Return the execution that has the key, by the rule in the docstring of this module."""
    if "run" not in row:
        return None
    run, digest = str(row["run"]), str(row["ih"])
    state = yield from state_of(known, tenant, run)
    if state is None:
        is_lost = now_ms - int(row["t0"]) > START_RESENT_SECONDS_MAX * 1_000
        # A retry removes the start message from the row. So without a start message the execution
        # had a log, and TTL has deleted that log.
        is_over = is_lost or "body" not in row
        return None if is_over else KeyOwner(run, json.loads(str(row["body"])), digest)
    if state == "damaged" or not state.is_ended:
        return KeyOwner(run, None, digest)
    is_held = is_held_for_retry(row, state, now_ms)
    return KeyOwner(run, None, digest, is_held=True) if is_held else None


def is_held_for_retry(row: Item, state: Execution, now_ms: int) -> bool:
    """Return True while a retry of an ended execution, which a caller has requested, may still be
    carried out.
    """
    return int(row.get("held", -1)) == state.redrives and int(row["until"]) > now_ms


def state_of(
    known: Lookup, tenant: str, run: str
) -> Generator[Effect, Any, Execution | Literal["damaged"] | None]:
    """Return the state; None without a log. A damaged log, which `doctor` reports, counts as that
    of a running execution. Raises FormatError for a log that this release cannot read.
    """
    log = known.log(tenant, run)
    try:
        yield from log.load()
    except FormatError:
        raise
    except HoldfastError as error:
        if not is_damage(error):
            raise
        return "damaged"
    return log.state


def release(slot: KeySlot, state: Execution, now_ms: int) -> Generator[Effect, Any, Item]:
    """Take the key away from the execution, if it has the key and no retry holds it. Return the
    row, which still names the execution only if a retry holds the key.
    """
    released = yield Update(
        tables.MAIL,
        slot.partition,
        keys.ONLY,
        put={"ttl": now_ms // 1_000 + START_RESENT_SECONDS_MAX},
        add={"n": 1},
        remove=("run", "body", "held", "until"),
        where=(
            Condition("run", "=", state.run),
            Condition("held", "<", state.redrives, or_absent=True),
        ),
    )
    row: Item = released.item
    return row


def hold_for_retry(known: Lookup, tenant: str, state: Execution) -> NoResult:
    """Keep or take the key for an ended execution, before the request of its retry is stored. A
    retry that is never carried out leaves a row which TTL deletes.

    Raises RequestError HF561 when another execution has the key.
    """
    yield from _hold(known, tenant, state, is_stored=False)


def _hold(known: Lookup, tenant: str, state: Execution, *, is_stored: bool) -> NoResult:
    """Hold the key. `is_stored`: a worker carries the stored retry out."""
    rule = rule_for(known, state.workflow)
    key = None if rule is None else (yield from key_of(tenant, state.run))
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
        held = {"held": state.redrives, "until": now_ms + RETRY_HOLD_MS}
        fields = {"run": state.run, "t0": state.started_ms, "ih": "", **held}
        # Without a TTL the row belongs to an open execution: a worker carries out a retry that
        # another request has stored, or the execution has ended and its key is not released yet. So
        # the row must not get a TTL here.
        is_open = row is not None and row.get("run") == state.run and "ttl" not in row
        if is_stored or is_open:
            written = yield _change(slot, row, fields, ("ttl", "body"))
        else:
            ttl = {"ttl": now_ms // 1_000 + START_RESENT_SECONDS_MAX}
            written = yield _change(slot, row, {**fields, **ttl}, ("body",))
        if written.is_done:
            return
    raise busy(slot)


def continue_with_key(known: Lookup, tenant: str, state: Execution) -> NoResult:
    """Hold the key for the record of a retry. Raises as `hold_for_retry` does.

    From that record on the execution is open for any time, so its rows lose their TTL.
    """
    yield from _hold(known, tenant, state, is_stored=True)
    # The end of the execution has set a TTL on its row. Without this update TTL would delete the
    # row, and the next end would not find the key that it must release.
    partition, there = keys.inbox(tenant, state.run), Condition("key", "present")
    yield Update(tables.MAIL, partition, keys.BUSINESS_KEY, remove=("ttl",), where=(there,))


def note_void_retry(tenant: str, state: Execution, refused: RequestError) -> NoResult:
    """Store why a worker did not carry out an accepted retry, so that `describe` can say it."""
    partition, there = keys.inbox(tenant, state.run), Condition("key", "present")
    note: dict[str, str | int] = {"void": f"[{refused.code}] {refused.message}"}
    note["retries"] = state.redrives
    yield Update(tables.MAIL, partition, keys.BUSINESS_KEY, put=note, where=(there,))


def void_retry(tenant: str, run: str, redrives: int) -> Generator[Effect, Any, str | None]:
    """Return why the last retry of an ended execution was not carried out, if one was not.
    `redrives`: how often the execution had been redriven when it ended.
    """
    row = yield Get(tables.MAIL, keys.inbox(tenant, run), keys.BUSINESS_KEY)
    is_of_this_end = row is not None and row.get("retries") == redrives
    return str(row["void"]) if is_of_this_end else None


def key_of(tenant: str, run: str) -> Generator[Effect, Any, str | None]:
    row = yield Get(tables.MAIL, keys.inbox(tenant, run), keys.BUSINESS_KEY)
    return None if row is None else str(row["key"])


def busy(slot: KeySlot) -> ServiceFault:
    """Return the error for a request that the caller must repeat: nothing was accepted."""
    workflow, key = slot.rule.workflow, slot.key
    return ServiceFault(
        "HF562",
        f"executions of {workflow} with the key {key!r:.90} begin and end too fast, or one of them"
        " is about to be retried; send the request again",
        retry="later",
    )


# -- starting --------------------------------------------------------------------------------------


def put_key(slot: KeySlot, run: str) -> NoResult:
    """Store the key in the inbox of the execution, before its start message is sent: at its end a
    worker needs the key.
    """
    partition = keys.inbox(slot.tenant, run)
    row: Item = {"pk": partition, "sk": keys.BUSINESS_KEY, FORMAT_FIELD: FORMAT}
    yield Put(tables.MAIL, {**row, "key": slot.key})


def running(known: Lookup, slot: KeySlot, chance: bytes) -> Generator[Effect, Any, str]:
    """Return the execution that runs for the key. Start one if there is none. Raises ServiceFault
    HF562 while a retry of the last execution is under way.
    """
    tenant, rule = slot.tenant, slot.rule
    data = known.types.normalise_input(tenant, rule.workflow, {rule.parameter: slot.key})
    yield from known.programs.store(tenant, rule.definition)
    now_ms = yield Clock()
    run = keys.mint_run(tenant, now_ms, chance, known.keys.secret, known.spread.minted)
    stowed = yield from inbox.stow(tenant, run, data, START_INPUT_BYTES_MAX)
    names = {"workflow": rule.workflow, "definition": rule.definition.hash}
    wanted = messages.start(tenant, run, **names, t0=now_ms, input=stowed)
    owner = yield from take(known, slot, wanted, data)
    if owner.is_held:
        raise busy(slot)
    yield from begin(slot, owner)
    return owner.run


def begin(slot: KeySlot, owner: KeyOwner) -> NoResult:
    """Send the start message of the execution that has the key, unless its log has begun.

    If the execution got the key from an earlier request, the message is delayed.
    """
    if owner.body is None:
        return
    yield from put_key(slot, owner.run)
    yield from pending_starts.guard(owner.body)
    if owner.is_new:
        yield Send((Message(owner.body),))
        return
    # The request that took the key may have crashed before it sent the message.
    yield from pending_starts.send_again(owner.body)
