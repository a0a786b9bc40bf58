"""Start an execution: claim its name, store its input, send the start message.

Everything is stored before the message is sent (R12), and the sweeper sends a lost message again
(R18). A repeated start sends the message again as long as the execution has no log, because the
first request may have crashed before it sent it. That message is delayed: two workers that run the
first task before record 0 is stored could both run it. A name belongs to one execution as long as
the row of the name exists.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.asl.program import Json
from holdfast.core.state import PRIORITY_DEFAULT, Execution
from holdfast.errors import HoldfastError, RequestError, is_damage
from holdfast.limits import NAME_RETENTION_SECONDS, START_INPUT_BYTES_MAX
from holdfast.runtime import inbox, messages, pending_starts
from holdfast.runtime.commands import keyed
from holdfast.runtime.commands.fields import hash_of, priority_of
from holdfast.runtime.commands.graphs import find_workflow, normalised_input
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.start_rows import Start, put_start
from holdfast.runtime.effects import (
    Clock,
    Effect,
    Get,
    JsonResult,
    Message,
    NoResult,
    PutIfAbsent,
    Send,
)
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.spread import MACHINE_STARTS
from holdfast.sealed import hidden


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted start. `earlier` is the state of the execution that already has the name, if its
    log has begun.
    """

    start: Start
    earlier: Execution | None = None


class NameTakenError(Exception):
    """The name belongs to an execution with another input or another parent."""


# -- the API of Holdfast ---------------------------------------------------------------------------


def start(known: Lookup, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Start a workflow. `request`: workflow, input?, name?, priority?.

    The same name and input give the same execution. If that execution exists and is FAILED,
    TIMED_OUT or ABORTED, the response has `started` False, its `status`, its `error` if any, and
    `undone` True when it cannot be retried. Raises RequestError HF201, HF205, HF210, HF212.
    """
    wanted, data = yield from of_workflow(known, tenant, request, chance)
    return (yield from begin(known, tenant, wanted, data))


def begin(known: Lookup, tenant: str, wanted: Start, data: Json) -> JsonResult:
    """Start the execution. Return and raise as `start` does."""
    name = wanted.name
    try:
        accepted = yield from accept(known, tenant, wanted, data, has_row=False)
    except NameTakenError:
        raise RequestError(
            "HF212",
            f"an execution of {wanted.workflow} named {name!r} exists and has another input",
            status=409,
            help="choose another name, or send the same input to get the same execution",
        ) from None
    shown: dict[str, Any] = {
        "execution": accepted.start.run,
        "name": name,
        "workflow": wanted.workflow,
    }
    earlier = accepted.earlier
    if earlier is None or earlier.status in {"RUNNING", "SUCCEEDED"}:
        return shown
    shown |= {"started": False, "status": earlier.status}
    if earlier.error is not None:
        shown["error"] = earlier.error
    return {**shown, "undone": True} if earlier.is_undone else shown


def of_workflow(
    known: Lookup, tenant: str, request: Mapping[str, Any], chance: bytes
) -> Generator[Effect, Any, tuple[Start, Json]]:
    """Return the start of a workflow, and the input in the form of its type.

    `request`: workflow, input?, name?, priority?. This stores the definition, before an execution
    can refer to it.
    """
    found = yield from find_workflow(known, tenant, request.get("workflow"))
    workflow, definition = found.name, found.definition
    name = request.get("name")
    if name is not None:
        keys.require_execution_name(name)
    data = normalised_input(known, tenant, found, request.get("input"))
    now_ms = yield Clock()
    yield from known.programs.store(tenant, definition)
    run = keys.mint_run(tenant, now_ms, chance, known.keys.secret, known.spread.minted)
    priority = priority_of(request)
    wanted = Start(run, workflow, name, now_ms, definition.hash, None, {}, priority=priority)
    return wanted, data


# -- every start -----------------------------------------------------------------------------------


def accept(
    known: Lookup, tenant: str, wanted: Start, data: Json, *, has_row: bool
) -> Generator[Effect, Any, Accepted]:
    """Create the execution, or find the existing one with its name and the same input.

    `has_row`: also store a row of the start, for `start_rows`. A start without a name writes the
    input, the row of `pending_starts` and the message. A name costs one more row, and a repeated
    start costs a read of the log. Raises NameTakenError, RequestError HF560.
    """
    start, is_repeated = wanted, False
    rule = keyed.rule_for(known, start.workflow)
    slot = None if rule is None else rule.slot(tenant, data)
    if wanted.name is not None:
        if slot is not None:
            yield from _require_free_key(known, slot, wanted)
        start = yield from claim_name(tenant, wanted, data)
        if wanted.parent is not None and start.run != wanted.run:
            # The execution that has the name belongs to another parent. It would not report its end
            # to this parent, which would wait for ever.
            raise NameTakenError
        is_owner = (start.run, start.started_ms) == (wanted.run, wanted.started_ms)
        if not is_owner and wanted.parent is None:
            earlier = yield from _state_of(known, tenant, start.run)
            if earlier is not None:
                return Accepted(start, earlier)
            is_repeated = True
    stowed = yield from inbox.stow(tenant, start.run, data, START_INPUT_BYTES_MAX)
    start, stored_input = replace(start, input=stowed), None
    if slot is not None:
        run = yield from _take_key(known, slot, start, data)
        if run != start.run:
            return Accepted(replace(start, run=run))
    if has_row:
        start = yield from put_start(tenant, start)
        stored_input = keys.starts(tenant, start.workflow, MACHINE_STARTS.of(start.run))
    body = message_of(tenant, start)
    yield from pending_starts.guard(body, stored_input)
    if is_repeated:
        yield from pending_starts.send_again(body)
        return Accepted(start)
    # The start of a child goes to the queue of running work, because its parent waits for it. So it
    # does not wait behind new starts.
    yield Send((Message(body),), "starts" if start.parent is None else "work")
    return Accepted(start)


def _take_key(
    known: Lookup, slot: keyed.KeySlot, wanted: Start, data: Json
) -> Generator[Effect, Any, str]:
    """Take the business key of the input for the wanted start. Return the start of the execution
    that has the key: an earlier one if a caller that got no answer starts again with the same
    input.

    Raises RequestError HF560 when another execution runs for the key.
    """
    owner = yield from keyed.take(known, slot, message_of(slot.tenant, wanted), data)
    if owner.run == wanted.run:
        yield from keyed.put_key(slot, owner.run)
        return owner.run
    yield from keyed.begin(slot, owner)
    is_same = owner.input_hash == hash_of(hidden(data))
    if not is_same or wanted.name or wanted.parent or wanted.origin:
        raise _key_taken(slot, owner)
    return owner.run


def _require_free_key(known: Lookup, slot: keyed.KeySlot, wanted: Start) -> NoResult:
    """Refuse a start with a new name before it takes that name. Otherwise the name would be taken,
    but no execution would exist for it. Raises RequestError HF560.
    """
    name = keys.name(slot.tenant, wanted.workflow, str(wanted.name))
    if (yield Get(tables.MAIL, name, keys.ONLY)) is None:
        owner = yield from keyed.find_owner(known, slot)
        if owner is not None:
            yield from keyed.begin(slot, owner)
            raise _key_taken(slot, owner)


def _key_taken(slot: keyed.KeySlot, owner: keyed.KeyOwner) -> RequestError:
    return RequestError(
        "HF560",
        f"execution {owner.run} of {slot.rule.workflow} runs for the key {slot.key!r:.90}",
        status=409,
        help="send it an event; or stop it, and start again",
    )


def _state_of(known: Lookup, tenant: str, run: str) -> Generator[Effect, Any, Execution | None]:
    """Return the state of the execution; None when no worker has begun it, or when its log is
    damaged, which `doctor` reports.
    """
    log = known.log(tenant, run)
    try:
        yield from log.load()
    except HoldfastError as error:
        if not is_damage(error):
            raise
    return log.state


def claim_name(tenant: str, wanted: Start, data: Json) -> Generator[Effect, Any, Start]:
    """Return the start that owns the name: the wanted one, or an earlier one with the same input.

    Raises NameTakenError when the earlier one has another input.
    """
    is_machine = keys.is_machine_workflow(wanted.workflow)
    item: dict[str, str | int | bytes] = {
        "pk": keys.name(tenant, wanted.workflow, str(wanted.name)),
        "sk": keys.ONLY,
        FORMAT_FIELD: FORMAT,
        "run": wanted.run,
        # Hide the secrets before the comparison. Encryption is randomised, so the same input would
        # otherwise have another hash each time, and a repeated start would be refused.
        "ih": hash_of(data if is_machine else hidden(data)),
        "dh": wanted.definition,
        "t0": wanted.started_ms,
        "ttl": wanted.started_ms // 1_000 + NAME_RETENTION_SECONDS,
    }
    found = yield PutIfAbsent(tables.MAIL, item)
    if found is None:
        return wanted
    if found["ih"] != item["ih"]:
        raise NameTakenError
    owner = replace(wanted, run=str(found["run"]), started_ms=int(found["t0"]))
    # A start of a state machine keeps its own definition, which is that of the version in its
    # origin.
    return owner if is_machine else replace(owner, definition=str(found["dh"]))


def message_of(tenant: str, start: Start) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "workflow": start.workflow,
        "definition": start.definition,
        "t0": start.started_ms,
        "input": dict(start.input),
    }
    if start.origin is not None and keys.is_machine_workflow(start.workflow):
        fields["origin"] = start.origin
    if start.name is not None:
        fields["name"] = start.name
    if start.parent is not None:
        fields["parent"] = start.parent
    if start.priority != PRIORITY_DEFAULT:
        fields["priority"] = start.priority
    return messages.start(tenant, start.run, **fields)
