"""The storing of an event or a request: its data is checked, and the executions that wait for it
are woken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core.state import Execution
from holdfast.errors import RequestError
from holdfast.limits import EVENT_BYTES_MAX, EVENT_RETENTION_SECONDS, REQUEST_SUFFIX
from holdfast.runtime import event_claims, event_pointers, inbox, kept_events
from holdfast.runtime.commands import keyed, keyed_events
from holdfast.runtime.commands.fields import error_and_cause
from holdfast.runtime.commands.keyed import KeyRule
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.payloads import is_same, mark_of_secrets, normalised
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    Item,
    JsonResult,
    PutIfAbsent,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD

_ID_CHARACTERS: Final = 32


@dataclass(frozen=True, slots=True)
class CheckedEvent:
    """An event whose data fits its type. `execution` is the only execution that may use it, if the
    sender has named one. `failure` has the error, and perhaps the cause, of an event that fails the
    wait; its data is None.
    """

    id: str
    name: str
    key: str
    data: Json
    execution: Any
    failure: Mapping[str, str]


def checked(
    known: Lookup, tenant: str, request: Mapping[str, Any], chance: bytes
) -> Generator[Effect, Any, CheckedEvent]:
    """Return the event of the request, with its data checked. Raises RequestError HF202, HF206,
    HF211, HF233.
    """
    name, key = request.get("name"), keys.require_business_key(request.get("key", ""))
    wanted = yield from known.event_payload(tenant, name, key)
    what, failure = f"event {name!r}", _failure(request)
    if isinstance(name, str) and name.endswith(REQUEST_SUFFIX):
        what = f"request {name.removesuffix(REQUEST_SUFFIX)!r}"
        if failure:
            found = f"the {what} has data and no error: its receiver replies to it"
            raise RequestError("HF233", found)
    data = None
    if not failure:
        data = normalised(known.types, tenant, wanted, request.get("data"), what)
    event_id = keys.require_name(request.get("id") or chance.hex()[:20], "the id of the event")
    return CheckedEvent(event_id, str(name), key, data, request.get("execution"), failure)


def _failure(request: Mapping[str, Any]) -> dict[str, str]:
    """Return error and cause of an event that fails the wait, {} for another. Raises RequestError
    HF233.
    """
    found = error_and_cause(request)
    if not found:
        return found
    if "error" not in found:
        raise RequestError("HF233", "an event with a cause needs the name of its error")
    if request.get("data") is not None:
        raise RequestError("HF233", "an event has either data or an error, and this has both")
    return found


def store(known: Lookup, tenant: str, wanted: CheckedEvent, chance: bytes) -> JsonResult:
    """Store the event, and wake the executions that wait for it.

    The event is stored before the list of waiting executions is read, and an execution registers
    there before it reads events (R13). So either the execution finds the event, or it is woken
    here. An event that is claimed for the only execution that waits is given on by the worker of
    that execution (`event_claims.py`). If the event starts several workflows, each of them gets a
    copy of its own.
    """
    rules = [] if wanted.execution is not None else keyed.started_by(known, wanted.name)
    if len(rules) > 1:
        return (yield from _store_copies(known, tenant, wanted, rules, chance))
    return (yield from _store_one(known, tenant, wanted, next(iter(rules), None), chance))


def _store_copies(
    known: Lookup, tenant: str, wanted: CheckedEvent, rules: list[KeyRule], chance: bytes
) -> JsonResult:
    """Store a copy of the event for each workflow. The id of a copy is made of those of the event
    and the workflow, so the same event, when it is sent again, has the same copies.
    """
    place = keys.event(tenant, wanted.name, wanted.key), keys.stored_event(wanted.id)
    earlier = yield Get(tables.MAIL, *place)
    if earlier is not None:
        # It was sent before, when it started one workflow or was kept for any execution. A copy
        # would reach that workflow a second time.
        rule = yield from _rule_of(known, tenant, earlier, rules)
        return (yield from _store_one(known, tenant, wanted, rule, chance))
    waiting, runs, is_dropped = 0, dict[str, str](), True
    for rule in rules:
        copy_id = f"{wanted.id}.{rule.workflow}"
        digest = hashlib.sha256(copy_id.encode())
        name = copy_id if keys.is_name(copy_id) else digest.hexdigest()[:_ID_CHARACTERS]
        # Two executions that start at the same time with the same bytes would have the same id.
        drawn = hashlib.sha256(chance + digest.digest()).digest()[: len(chance)]
        told = yield from _store_one(known, tenant, replace(wanted, id=name), rule, drawn)
        waiting += told["waiting"]
        is_dropped = is_dropped and "dropped" in told
        runs |= {rule.workflow: told["execution"]} if "execution" in told else {}
    sent = {"event": wanted.id, "waiting": waiting, "executions": runs}
    return {**sent, "dropped": True} if is_dropped else sent


def _rule_of(
    known: Lookup, tenant: str, item: Item, rules: list[KeyRule]
) -> Generator[Effect, Any, KeyRule | None]:
    """Return the rule of the workflow whose execution the stored event is for."""
    run = str(item.get(inbox.ADDRESSEE, inbox.DROPPED))
    state = None if run == inbox.DROPPED else (yield from keyed.state_of(known, tenant, run))
    workflow = state.workflow if isinstance(state, Execution) else ""
    return next((one for one in rules if one.workflow == workflow), None)


def _store_one(
    known: Lookup, tenant: str, wanted: CheckedEvent, rule: KeyRule | None, chance: bytes
) -> JsonResult:
    """Store the event. `rule`: the keyed workflow that it starts."""
    if len(json.dumps(wanted.data)) > EVENT_BYTES_MAX:
        raise RequestError("HF203", f"the event is over {EVENT_BYTES_MAX} bytes", status=413)
    return (yield from _Storing(known, tenant, wanted, rule, chance).store())


@dataclass(frozen=True, slots=True)
class _Storing:
    """The storing of one event. `rule`: the keyed workflow that it starts."""

    known: Lookup
    tenant: str
    wanted: CheckedEvent
    rule: KeyRule | None
    chance: bytes

    def store(self) -> JsonResult:
        item = yield from _item_of(self.tenant, self.wanted)
        found: Item | None = None
        if self.rule is not None:
            # The same event may be sent twice. Use the stored one, because its execution may have
            # ended, and a new search would then start a second execution.
            found = yield Get(tables.MAIL, str(item["pk"]), str(item["sk"]))
        if found is None:
            item = yield from self._addressed(item)
            found = yield PutIfAbsent(tables.MAIL, item)
        if found is None and inbox.CLAIMED in item:
            return (yield from self._wake_claimant(item))
        if found is not None and not is_same(_stowed(found), _stowed(item)):
            text = f"an event with the id {self.wanted.id!r} exists and has other data"
            raise RequestError("HF213", text, status=409)
        return (yield from self._wake(item if found is None else found))

    def _addressed(self, item: Item) -> Generator[Effect, Any, Item]:
        """Return the item of the new event with its addressee, if it has one."""
        if self.wanted.execution is not None:
            log = yield from self.known.require_log(self.tenant, str(self.wanted.execution))
            return {**inbox.addressed(item, log.run), inbox.DIRECT: 1}
        if self.rule is not None:
            slot = keyed.KeySlot(self.tenant, self.rule, self.wanted.key)
            run = yield from keyed.running(self.known, slot, self.chance)
            return inbox.addressed(item, run)
        return (yield from event_claims.for_only_execution(item))

    def _wake_claimant(self, item: Item) -> JsonResult:
        """Wake the execution that the new event is claimed for.

        The registrations are not read again. If an execution has registered since the first read,
        and the claimant does not use the event, the worker of this wake gives the event on.
        """
        wanted, run = self.wanted, str(item[inbox.ADDRESSEE])
        yield from event_pointers.send_wakes(self.tenant, wanted.name, wanted.key, item, [run])
        return {"event": wanted.id, "waiting": 1}

    def _wake(self, stored: Item) -> JsonResult:
        """Wake the executions that may use the stored event. If there are none, list it as kept."""
        tenant, wanted = self.tenant, self.wanted
        name, key, sent = wanted.name, wanted.key, {"event": wanted.id}
        only = stored.get(inbox.ADDRESSEE)
        if only == inbox.DROPPED:
            return {**sent, "waiting": 0, "dropped": True}
        is_direct, is_claimed = inbox.DIRECT in stored, inbox.CLAIMED in stored
        if self.rule is not None and only is not None and not (is_direct or is_claimed):
            slot = keyed.KeySlot(tenant, self.rule, key)
            run = yield from keyed_events.address(self.known, slot, stored, self.chance)
            woken = yield from event_pointers.wake(tenant, name, key, stored, run)
            return {**sent, "waiting": woken, "execution": run}
        addressee = None if only is None else str(only)
        woken = yield from event_pointers.wake(tenant, name, key, stored, addressee)
        if not woken and is_claimed:
            yield from kept_events.free_abandoned(tenant, str(addressee), name, key)
        elif not woken:
            at_ms = int(stored["at"])
            yield from kept_events.keep_listed(tenant, wanted.id, at_ms, {"name": name, "key": key})
        return {**sent, "waiting": woken}


def _item_of(tenant: str, wanted: CheckedEvent) -> Generator[Effect, Any, Item]:
    """Return the item of the event, which any execution may use."""
    now_ms = yield Clock()
    item: Item = {
        "pk": keys.event(tenant, wanted.name, wanted.key),
        "sk": keys.stored_event(wanted.id),
        FORMAT_FIELD: FORMAT,
        "at": now_ms,
        "expires": now_ms + EVENT_RETENTION_SECONDS * 1_000,
        "ttl": now_ms // 1_000 + EVENT_RETENTION_SECONDS + 86_400,
    }
    if wanted.failure:
        return {**item, **wanted.failure, **inbox.FAILING_MARK}
    stowed = yield from inbox.stow(tenant, "events", wanted.data)
    return {**item, **stowed, **mark_of_secrets(wanted.data)}


def _stowed(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in ("v", "ref", "sh", "error", "cause") if key in item}
