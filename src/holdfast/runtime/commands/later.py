"""Later events and starts: `send("reminder", …, delay=hours(4))`, `start(dispatch, …, at=moment)`.

Each is an execution that waits for a timer. So operators can list, show, pause and stop it; it
costs nothing while it waits, and it survives crashes. Its first definition is built in:

    send    an execution of `holdfast.later`:   wait ──► send ──► end
    start   an execution of the workflow:       wait ──► go on as new, with its input

A start that goes on as new (`again`) stays the same execution. So its id is known before it begins:
the id stops the execution, and the result of the workflow is found under it. The workflow begins
with the definition that is the newest at that time.

The moment is fixed when the step is entered. A step that is repeated after a crash starts an
execution of the same name and input, which is the one that exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.asl.program import Json
from holdfast.asl.resources import AGAIN, LATER_WORKFLOW, SEND
from holdfast.asl.timestamps import nanos_of
from holdfast.core.decision import iso_time
from holdfast.core.later import waiting_for
from holdfast.errors import RequestError
from holdfast.limits import REQUEST_SUFFIX
from holdfast.runtime.commands import keyed
from holdfast.runtime.commands.lookup import Lookup
from holdfast.runtime.commands.start import begin, of_workflow
from holdfast.runtime.commands.start_rows import Start
from holdfast.runtime.commands.stored_events import checked
from holdfast.runtime.effects import Clock, JsonResult
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.definitions import Definition


def _definition(command: str) -> Definition:
    asl, hash_ = waiting_for(command)
    return Definition(asl, {}, hash_)


def send_later(known: Lookup, tenant: str, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Start the execution that sends the event at the time `at`. `request`: name, key, data or
    error and cause?, at, id?, execution?. Return the ids of the event and, as `later`, of that
    execution.

    The id is also the name of that execution, so the same event is sent once. The data is checked
    now, so that the sender has the error. Raises RequestError HF202, HF204, HF206, HF211, HF212,
    HF233.
    """
    at, name = _moment(request["at"]), request.get("name")
    is_received = isinstance(name, str) and known.is_received(name)
    kind = f"{name}{REQUEST_SUFFIX}" if is_received else name
    wanted = yield from checked(known, tenant, {**request, "name": kind}, chance)
    event: dict[str, Json] = {"name": name, "key": wanted.key, "data": wanted.data, "id": wanted.id}
    event.update(wanted.failure)
    if wanted.execution is not None:
        event["execution"] = wanted.execution
    definition = _definition(SEND)
    yield from known.programs.store(tenant, definition)
    now_ms = yield Clock()
    run = keys.mint_run(tenant, now_ms, chance, known.keys.secret, known.spread.minted)
    start = Start(run, LATER_WORKFLOW, wanted.id, now_ms, definition.hash, None, {})
    begun = yield from begin(known, tenant, start, {"at": at, "arguments": event})
    return {"event": wanted.id, "waiting": 0, "later": begun["execution"]}


def start_later(
    known: Lookup, tenant: str, request: Mapping[str, Any], chance: bytes
) -> JsonResult:
    """Start the execution that begins with the workflow at the time `at` of the request. Request
    and result are otherwise those of `start`. Raises RequestError HF204 for a time without a zone
    and for a keyed workflow, and as `start` does.
    """
    at = _moment(request["at"])
    wanted, data = yield from of_workflow(known, tenant, request, chance)
    if keyed.rule_for(known, wanted.workflow) is not None:
        raise RequestError(
            "HF204",
            f"{wanted.workflow} has a key, which an execution would hold before it begins",
            help="send an event of its key at that time",
        )
    definition = _definition(AGAIN)
    yield from known.programs.store(tenant, definition)
    waiting = replace(wanted, definition=definition.hash)
    return (yield from begin(known, tenant, waiting, {"at": at, "arguments": data}))


def _moment(value: Any) -> str:
    nanos = nanos_of(value) if isinstance(value, str) else None
    if nanos is None:
        raise RequestError(
            "HF204",
            f"`at` is {value!r:.60}, expected a time with its zone",
            help="for example 2027-01-15T08:00:00Z",
        )
    return iso_time(nanos // 1_000_000)
