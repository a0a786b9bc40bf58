"""Executions: start, describe, stop, redrive. What is said of one comes from its log alone.

Rules of this file:
* Store, then tell; a repeated start tells again (R12): the first caller may have died in between.
* A given name belongs to one execution for as long as its row lives. Who starts it again with the
  same input while it runs gets the same answer (AWS API, StartExecution).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core.children import TOO_DEEP, too_deep
from holdfast.core.run_ids import child_name, child_run, uuid_of
from holdfast.core.state import Execution, MachineOrigin, Parent
from holdfast.limits import NAME_RETENTION_SECONDS
from holdfast.runtime import inbox, messages
from holdfast.runtime.commands.presentation import json_text
from holdfast.runtime.effects import Clock, Effect, JsonResult, Message, PutIfAbsent, Send
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.formats import FORMAT, FORMAT_FIELD
from holdfast.runtime.storage.log import Log
from holdfast.stepfunctions.arns import require_name
from holdfast.stepfunctions.catalogue import Service, Startable
from holdfast.stepfunctions.faults import StatesFault
from holdfast.stepfunctions.finding import FoundExecution, require_execution
from holdfast.stepfunctions.starts import (
    Start,
    input_of,
    origin_of,
    put_start,
    send_start,
    stow_input,
    workflow_of,
)
from holdfast.stepfunctions.versions import resolve_for_start

REDRIVABLE_MS: Final = 14 * 86_400_000  # AWS docs, RedriveExecution: within 14 days of the end


# -- start -----------------------------------------------------------------------------------------


def start_execution(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Costs two effects without a name, three with one: (name row,) start row, start message."""
    return (yield from _start_as(service, request, chance, None))


def start_nested(
    service: Service, request: Mapping[str, Any], chance: bytes, parent: Parent
) -> JsonResult:
    """StartExecution by a task that waits for the end: the execution knows whom to tell.

    Its run is `run.entry.attempt` of its parent: who repeats the call starts the same one, and one
    that has ended tells its parent again. Raises StatesFault Holdfast.TooDeep, which no client of
    AWS's knows: it is the task's own error.
    """
    return (yield from _start_as(service, request, chance, parent))


def _start_as(
    service: Service, request: Mapping[str, Any], chance: bytes, parent: Parent | None
) -> JsonResult:
    if "name" in request:
        require_name(request["name"])
    startable = yield from resolve_for_start(service, request["stateMachineArn"], chance)
    data = input_of(service, request)
    now_ms = yield Clock()
    run = keys.mint_run(service.tenant, now_ms, chance, service.keys.secret)
    if parent is not None:
        run = child_run(parent["run"], parent["entry"], parent["attempt"])
        cause = too_deep(run, startable.name)
        if cause is not None:
            raise StatesFault(TOO_DEEP, cause)
    start = _start(service, startable, request.get("name"), (run, now_ms))
    if start.name is not None:
        owner = yield from _claim_name(service.tenant, start, data)
        if parent is not None and owner[0] != run:
            raise _already_exists(start)  # it would tell nobody
        start = _start(service, startable, start.name, owner)
        is_repeated = parent is None and owner != (run, now_ms)
        if is_repeated and (yield from _is_begun(service.tenant, start)):
            return _started(start)
    stowed = yield from stow_input(service.tenant, start.run, data)
    start = yield from put_start(service, replace(start, input=stowed, parent=parent))
    yield from send_start(service, start)
    return _started(start)


def _start(service: Service, startable: Startable, name: str | None, run: tuple[str, int]) -> Start:
    """`run`: its id, and when it was asked for."""
    own_name = child_name(run[0]) if "." in run[0] else uuid_of(run[0])
    execution_name = name or own_name
    if startable.type == "EXPRESS":
        # A name is no claim here: as many express executions may have one as like to.
        arn = service.place.express(startable.name, execution_name, own_name)
        name = None
    else:
        arn = service.place.execution(startable.name, execution_name)
    origin = origin_of(service, startable, arn, execution_name)
    return Start(run[0], name, run[1], startable.definition, origin, {})


def _started(start: Start) -> dict[str, Any]:
    return {"executionArn": start.origin["execution_arn"], "startDate": start.started_ms}


def _claim_name(tenant: str, start: Start, data: Json) -> Generator[Effect, Any, tuple[str, int]]:
    """-> the run that owns the name, and its start: the new one, or one with the same input."""
    item: dict[str, str | int | bytes] = {
        "pk": keys.name(tenant, workflow_of(start.origin), str(start.name)),
        "sk": keys.ONLY,
        FORMAT_FIELD: FORMAT,
        "run": start.run,
        "ih": _hash(data),
        "dh": start.definition,
        "t0": start.started_ms,
        "ttl": start.started_ms // 1_000 + NAME_RETENTION_SECONDS,
    }
    found = yield PutIfAbsent(tables.MAIL, item)
    if found is None:
        return start.run, start.started_ms
    if found["ih"] != item["ih"]:
        raise _already_exists(start)
    return str(found["run"]), int(found["t0"])


def _is_begun(tenant: str, start: Start) -> Generator[Effect, Any, bool]:
    """An earlier start of the name has a log. Raises ExecutionAlreadyExists when it has ended."""
    log = Log(tenant, start.run, "api", "")
    yield from log.load()
    if log.state is not None and log.state.is_ended:
        raise _already_exists(start)
    return log.state is not None


def _already_exists(start: Start) -> StatesFault:
    arn = start.origin["execution_arn"]
    return StatesFault("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")


def _hash(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


# -- describe --------------------------------------------------------------------------------------


def describe_execution(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    found = yield from require_execution(service, request["executionArn"])
    now_ms = yield Clock()
    has_data = request.get("includedData") != "METADATA_ONLY"
    if found.state is not None:
        return description(found.state, now_ms, has_data=has_data)
    assert found.start is not None
    data = yield from inbox.unstow(service.tenant, found.run, found.start.input)
    return {
        **_identity(found.origin, "RUNNING", found.started_ms),
        **_data("input", data, has_data=has_data),
        **_redrive_fields(None, 0),
    }


def description(state: Execution, now_ms: int, *, has_data: bool = True) -> dict[str, Any]:
    """-> DescribeExecution's answer: an execution of a machine, as its log says. Times are ms.

    A part that there is none of is absent (seen in recordings).
    """
    assert state.origin is not None
    shown = _identity(state.origin, state.status, state.started_ms)
    if state.stopped_ms is not None:
        shown["stopDate"] = state.stopped_ms
    shown |= _data("input", state.input, has_data=has_data)
    if state.status == "SUCCEEDED":
        shown |= _data("output", state.output, has_data=has_data)
    texts = {"error": state.error, "cause": state.cause}
    shown |= {name: text for name, text in texts.items() if text is not None and has_data}
    since_ms = 0 if state.stopped_ms is None else now_ms - state.stopped_ms
    return {**shown, **_redrive_fields(state, since_ms)}


def _identity(origin: MachineOrigin, status: str, started_ms: int) -> dict[str, Any]:
    arns = {
        "stateMachineVersionArn": origin.get("version_arn"),
        "stateMachineAliasArn": origin.get("alias_arn"),
        "mapRunArn": origin.get("map_run_arn"),
    }
    return {
        "executionArn": origin["execution_arn"],
        "stateMachineArn": origin["state_machine_arn"],
        "name": origin["execution_name"],
        "status": status,
        "startDate": started_ms,
        **{name: arn for name, arn in arns.items() if arn is not None},
    }


def _data(name: str, value: Json, *, has_data: bool) -> dict[str, Any]:
    details = {f"{name}Details": {"included": has_data}}
    return {name: json_text(value), **details} if has_data else details


def _redrive_fields(state: Execution | None, since_ms: int) -> dict[str, Any]:
    reason = refusal(state, since_ms)
    redrives = 0 if state is None else state.redrives
    fields: dict[str, Any] = {"redriveCount": redrives, "redriveStatus": "REDRIVABLE"}
    if reason is None:
        return fields
    return {**fields, "redriveStatus": "NOT_REDRIVABLE", "redriveStatusReason": reason}


def refusal(state: Execution | None, since_ms: int) -> str | None:
    """-> why an execution that ended so long ago is not redriven; AWS docs, DescribeExecution.

    None: it was accepted, and no worker has begun it. AWS has no undo, and so no word for it.
    """
    status = "RUNNING" if state is None else state.status
    if state is None or status in {"RUNNING", "SUCCEEDED"}:
        return f"Execution is {status} and cannot be redriven"
    if state.is_undone:
        return "Execution has undone what it had done and cannot be redriven"
    return "Execution redrivable period exceeded" if since_ms > REDRIVABLE_MS else None


# -- stop and redrive ------------------------------------------------------------------------------


def stop_execution(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Control mail, whatever the execution does by then: what ends first counts."""
    found = yield from require_execution(service, request["executionArn"])
    if found.state is not None and found.state.stopped_ms is not None:
        return {"stopDate": found.state.stopped_ms}
    now_ms = yield Clock()
    texts = {name: str(request[name]) for name in ("error", "cause") if name in request}
    yield from _tell(service, found, (now_ms, chance), texts)
    return {"stopDate": now_ms}


def redrive_execution(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Raises ExecutionNotRedrivable, with the reason that DescribeExecution gives."""
    found = yield from require_execution(service, request["executionArn"])
    now_ms = yield Clock()
    stopped_ms = None if found.state is None else found.state.stopped_ms
    reason = refusal(found.state, now_ms - (stopped_ms or now_ms))
    if reason is not None:
        raise StatesFault("ExecutionNotRedrivable", f"Execution Not Redrivable: '{reason}'")
    yield from _tell(service, found, (now_ms, chance), {"kind": inbox.REDRIVE})
    return {"redriveDate": now_ms}


def _tell(
    service: Service, found: FoundExecution, at: tuple[int, bytes], fields: dict[str, str]
) -> Generator[Effect, Any, None]:
    now_ms, chance = at
    control_id = inbox.control_id(found.state, now_ms, chance)
    yield PutIfAbsent(
        tables.MAIL, inbox.control_item(service.tenant, found.run, control_id, now_ms, fields)
    )
    wake = messages.wake_mail(service.tenant, found.run, keys.control(control_id))
    yield Send((Message(wake),))
