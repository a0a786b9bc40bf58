"""The commands that a workflow itself gives: `send`, `start`, `again` (to continue as new) and
others. A `request` is one, too; after it the attempt waits for the reply.

A worker carries them out with the same functions as the API. So an event or an execution is the
same, whether a workflow or a caller of the API asked for it.

A worker may crash after any effect, and the attempt is then carried out again. The id of the event
and the name of the execution are therefore made of the execution and the entry number. A repeated
command finds what it has already stored, so the event or the execution exists once. The attempt is
committed before it is carried out (`Attempts.may_run_first`). Otherwise another definition might
give the same entry number to another command.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.asl.resources import (
    AGAIN,
    BULK_WORKFLOW,
    REPLY,
    SEND,
    SEND_LATER,
    STOP,
    is_later,
    is_request,
    started_by,
)
from holdfast.core import facts
from holdfast.core.decision import iso_time
from holdfast.core.facts import Fact
from holdfast.core.later import is_waiting, later_ms
from holdfast.core.migrating import keeps_key
from holdfast.core.state import Attempt, Execution
from holdfast.errors import RequestError, VaultFault
from holdfast.runtime.child_workflows import INVALID_ARGUMENTS, inherited
from holdfast.runtime.commands import requests
from holdfast.runtime.commands.events import event
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.start import start
from holdfast.runtime.commands.stop import stop
from holdfast.runtime.effects import SECRET_UNAVAILABLE, Clock, Effect
from holdfast.runtime.gates.permits import Permits
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.log import Log
from holdfast.runtime.worker.config import WorkerConfig

#: The cause of the end that is shown for an execution which another workflow has stopped.
_STOPPED: Final = "a workflow has stopped it"
_ID_CHARACTERS: Final = 32
_CHANCE_BYTES: Final = 7


def carry_out(
    setting: WorkerConfig, log: Log, permits: Permits, attempt: Attempt
) -> Generator[Effect, Any, Fact]:
    """Carry out the command. Return its result, or the reason why it was refused."""
    assert log.state is not None
    ticket = attempt.entry, attempt.attempt
    if attempt.target == AGAIN and log.state.workflow not in setting.workflows.definitions:
        return facts.TaskUnknown(*ticket)
    try:
        if is_request(attempt.kind, attempt.target):
            request_id = yield from _ask(setting.lookup(), log.state, log.tenant, attempt)
            return facts.Submitted(*ticket, {"request": request_id})
        if attempt.target == AGAIN:
            return (yield from _renewed(setting, log, permits, log.state, attempt))
        output = yield from _output(setting.lookup(), log.state, log.tenant, attempt)
    except RequestError as refusal:
        return _failed(attempt, INVALID_ARGUMENTS, refusal.message)
    except VaultFault as fault:
        return _failed(attempt, SECRET_UNAVAILABLE, fault.message)
    return facts.Succeeded(attempt.entry, attempt.attempt, output)


def _output(
    known: Lookup, state: Execution, tenant: str, attempt: Attempt
) -> Generator[Effect, Any, Json]:
    if state.workflow == BULK_WORKFLOW:
        # Imported here for cold starts: few workers process a bulk operation.
        from holdfast.runtime.worker.bulk_pages import carry_out as carry_out_bulk  # noqa: PLC0415

        return (yield from carry_out_bulk(known, state, tenant, attempt))
    once, chance = _once(state.run, attempt.entry)
    given: Any = attempt.arguments
    if is_later(attempt.target):
        return (yield from _later(known, state, tenant, attempt))
    if attempt.target == SEND:
        yield from event(known, tenant, {"id": once, **given}, chance)
        return None
    if attempt.target == STOP:
        yield from stop(known, tenant, str(given["execution"]), {"cause": _STOPPED}, chance)
        return None
    if attempt.target == REPLY:
        yield from requests.store_reply(known, tenant, given)
        return None
    request = {"workflow": started_by(attempt.target), "input": given, "name": once}
    started = yield from start(known, tenant, {**request, **inherited(state)}, chance)
    return str(started["execution"])


def _later(
    known: Lookup, state: Execution, tenant: str, attempt: Attempt
) -> Generator[Effect, Any, str]:
    """Start the execution that carries out the command later, and return its id. The time counts
    from the entry of the step, so that a repeated attempt has the same one.
    """
    # Imported here for cold starts: few workers carry out such a command, as for a bulk operation.
    from holdfast.runtime.commands import later  # noqa: PLC0415

    frame = state.frame_of(attempt.entry)
    assert frame is not None
    at = iso_time(later_ms(attempt.arguments, frame.entered_ms))
    once, chance = _once(state.run, attempt.entry)
    given: Any = attempt.arguments
    if attempt.target == SEND_LATER:
        sent = yield from later.send_later(known, tenant, {**given, "at": at, "id": once}, chance)
        return str(sent["later"])
    asked = {"workflow": started_by(attempt.target), "input": given["input"], "name": once}
    wanted = {**asked, **inherited(state), "at": at}
    started = yield from later.start_later(known, tenant, wanted, chance)
    return str(started["execution"])


def _ask(
    known: Lookup, state: Execution, tenant: str, attempt: Attempt
) -> Generator[Effect, Any, str]:
    """Send the request. Return its id, which names this attempt: the reply is stored for it."""
    asker = requests.Asker(state.run, attempt.entry, attempt.attempt)
    _, chance = _once(state.run, attempt.entry)
    given: Any = attempt.arguments
    return (yield from requests.request_of(known, tenant, given, asker, chance))


def _renewed(
    setting: WorkerConfig, log: Log, permits: Permits, state: Execution, attempt: Attempt
) -> Generator[Effect, Any, Fact]:
    """Store the newest definition. Return it, and the input converted to its types. A later start
    needs a place under the limits of its workflow now.
    """
    frame = state.frame_of(attempt.entry)
    if frame is None or frame.owner is not None:
        cause = "only the whole execution goes on as new, not one of its branches"
        return _failed(attempt, INVALID_ARGUMENTS, cause)
    known = setting.workflows
    data = known.types.normalise_input(log.tenant, state.workflow, attempt.arguments)
    definition = known.definitions[state.workflow]
    old = yield from setting.programs.fetch(log.tenant, state.definition)
    if not keeps_key(old.source_map, definition.source_map):
        cause = "the newest version has another key, or starts on another event"
        return _failed(attempt, INVALID_ARGUMENTS, cause)
    yield from setting.programs.store(log.tenant, definition)
    yield from setting.programs.fetch(log.tenant, definition.hash)
    program = setting.programs.program(definition.hash)
    place = None
    if is_waiting(state.definition):
        now_ms = yield Clock()
        place = yield from permits.admit(
            log.tenant, state.workflow, data, definition.hash, now_ms=now_ms
        )
    return facts.Renewed(attempt.entry, attempt.attempt, program, data, place)


def _once(run: str, entry: int) -> tuple[str, bytes]:
    """Return the name under which the command of the entry is stored, the same for each repetition,
    and bytes for a new id. The name is a hash when the execution's id is too long for a name.
    """
    place = f"{run}.{entry}"
    digest = hashlib.sha256(place.encode())
    name = place if keys.is_name(place) else digest.hexdigest()[:_ID_CHARACTERS]
    return name, digest.digest()[:_CHANCE_BYTES]


def _failed(attempt: Attempt, error: str, cause: str) -> facts.FailedWith:
    return facts.FailedWith(attempt.entry, attempt.attempt, error, cause)
