"""Executions: start, describe, stop and redrive, with AWS's shapes, through the commands of the
runtime.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl.program import Json
from holdfast.core.run_ids import TOO_DEEP, child_run, too_deep
from holdfast.core.state import Execution, MachineOrigin, Parent
from holdfast.errors import RequestError
from holdfast.runtime import inbox
from holdfast.runtime.commands.control import request_control, wake_for_control
from holdfast.runtime.commands.keyed import hold_for_retry
from holdfast.runtime.commands.presentation import without_secrets
from holdfast.runtime.commands.redrives import as_redriven, redrives_of
from holdfast.runtime.commands.retry import obstacle, send_retry
from holdfast.runtime.commands.start import NameTakenError, accept, of_workflow
from holdfast.runtime.commands.start_rows import Start
from holdfast.runtime.effects import Clock, Effect, JsonResult
from holdfast.runtime.storage import keys
from holdfast.runtime.storage.json_values import json_text
from holdfast.stepfunctions.arns import require_name
from holdfast.stepfunctions.catalogue import Service, Startable
from holdfast.stepfunctions.execution_lists import note_redrive
from holdfast.stepfunctions.faults import StatesFault, invalid_name
from holdfast.stepfunctions.finding import FoundExecution, require_execution
from holdfast.stepfunctions.lookup import find_created
from holdfast.stepfunctions.starts import input_of, origin_of, shown_trace, traced
from holdfast.stepfunctions.versions import resolve_for_start
from holdfast.stepfunctions.workflows import origin_of_workflow, own_name

_DELETING: Final = "State machine is in DELETING status"  # AWS docs, redriveStatusReason
REDRIVABLE_MS: Final = 14 * 86_400_000  # AWS docs, RedriveExecution: within 14 days of the end


# -- start -----------------------------------------------------------------------------------------


def start_execution(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Start an execution. Costs two effects without a name, three with one: (row of the name,) row
    of the start, start message.
    """
    return (yield from _start_as(service, request, chance, None))


def start_nested(
    service: Service, request: Mapping[str, Any], chance: bytes, parent: Parent
) -> JsonResult:
    """Start an execution for a task that waits for its end. The execution reports its end to the
    parent.

    Its id is `run.entry.attempt` of its parent. So a repeated call starts the same execution, and
    if that has ended, it reports to its parent again. Raises StatesFault Holdfast.TooDeep, which is
    the error of the task: AWS has no such exception.
    """
    return (yield from _start_as(service, request, chance, parent))


def _start_as(
    service: Service, request: Mapping[str, Any], chance: bytes, parent: Parent | None
) -> JsonResult:
    if "name" in request:
        require_name(request["name"])
    startable = yield from resolve_for_start(service, request["stateMachineArn"], chance)
    if startable.name in service.workflows:
        wanted, data = yield from _of_workflow(service, startable, request, chance, parent)
    else:
        wanted, data = yield from _of_machine(service, startable, request, chance, parent)
    assert wanted.origin is not None
    wanted = replace(wanted, origin=traced(wanted.origin, request))
    try:
        accepted = yield from accept(service.known, service.tenant, wanted, data, has_row=True)
    except NameTakenError:
        raise _already_exists(wanted) from None
    except RequestError as error:
        # Another execution runs for the key of a keyed workflow.
        raise StatesFault("ExecutionAlreadyExists", error.message) from None
    if accepted.earlier is not None and accepted.earlier.is_ended:
        raise _already_exists(wanted)
    start = accepted.start
    assert start.origin is not None
    return {"executionArn": start.origin["execution_arn"], "startDate": start.started_ms}


def _of_machine(
    service: Service,
    startable: Startable,
    request: Mapping[str, Any],
    chance: bytes,
    parent: Parent | None,
) -> Generator[Effect, Any, tuple[Start, Json]]:
    data = input_of(service, request)
    now_ms = yield Clock()
    run = keys.mint_run(service.tenant, now_ms, chance, service.keys.secret, service.spread.minted)
    if parent is not None:
        run = child_run(parent["run"], parent["entry"], parent["attempt"])
        cause = too_deep(run, startable.name)
        if cause is not None:
            raise StatesFault(TOO_DEEP, cause)
    name = request.get("name")
    execution_name = name or own_name(run)
    if startable.type == "EXPRESS":
        # Write no row of the name, because several express executions may have the same name.
        arn = service.place.express(startable.name, execution_name, own_name(run))
        name = None
    else:
        arn = service.place.execution(startable.name, execution_name)
    origin = origin_of(service, startable, arn, execution_name)
    workflow = keys.machine_workflow(startable.name)
    return Start(run, workflow, name, now_ms, startable.definition, origin, {}, parent), data


def _of_workflow(
    service: Service,
    startable: Startable,
    request: Mapping[str, Any],
    chance: bytes,
    parent: Parent | None,
) -> Generator[Effect, Any, tuple[Start, Json]]:
    """Start a deployed workflow. Raises InvalidName, InvalidExecutionInput;
    StateMachineTypeNotSupported with a parent.
    """
    if parent is not None:
        # A task of Step Functions starts this workflow and waits for its end. Refuse the start: a
        # workflow reports its output to its parent, but the task expects a description of the
        # execution.
        raise StatesFault(
            "StateMachineTypeNotSupported",
            f"{startable.name} is a workflow: a task cannot wait for its end. Use the resource "
            "states:startExecution without .sync, or call it from another workflow",
        )
    wanted = {"workflow": startable.name, "input": input_of(service, request)}
    if "name" in request:
        wanted["name"] = request["name"]
    try:
        start, data = yield from of_workflow(service.known, service.tenant, wanted, chance)
    except RequestError as error:
        if error.code == "HF201":
            raise invalid_name(request["name"]) from None
        raise StatesFault(
            "InvalidExecutionInput", f"Invalid State Machine Execution Input: '{error.message}'"
        ) from None
    origin = origin_of_workflow(service.place, startable.name, start.run, start.name)
    return replace(start, origin=origin), data


def _already_exists(start: Start) -> StatesFault:
    assert start.origin is not None
    arn = start.origin["execution_arn"]
    return StatesFault("ExecutionAlreadyExists", f"Execution Already Exists: '{arn}'")


# -- describe --------------------------------------------------------------------------------------


def describe_execution(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    found = yield from require_execution(service, request["executionArn"])
    now_ms = yield Clock()
    has_data = request.get("includedData") != "METADATA_ONLY"
    if found.state is not None:
        redrives = yield from redrives_of(service.tenant, found.state)
        state = as_redriven(found.state, redrives)
        shown = description(state, now_ms, found.origin, has_data=has_data)
        if shown["redriveStatus"] == "REDRIVABLE" and (yield from _is_deleting(service, found)):
            shown |= {"redriveStatus": "NOT_REDRIVABLE", "redriveStatusReason": _DELETING}
        return shown if redrives.last_ms is None else {**shown, "redriveDate": redrives.last_ms}
    assert found.start is not None
    shown = _identity(found.origin, "RUNNING", found.started_ms)
    if found.start.input:
        data = yield from inbox.unstow(service.tenant, found.run, found.start.input)
        shown |= _data("input", _shown(data, found.is_workflow), has_data=has_data)
    return {**shown, **_redrive_fields(None, 0)}


def description(
    state: Execution, now_ms: int, origin: MachineOrigin, *, has_data: bool = True
) -> dict[str, Any]:
    """Return the response of DescribeExecution, computed from the state alone. Times are ms.

    A member without a value is absent, as in recordings of AWS.
    """
    is_workflow = state.origin is None
    shown = _identity(origin, state.status, state.started_ms)
    if state.stopped_ms is not None:
        shown["stopDate"] = state.stopped_ms
    shown |= _data("input", _shown(state.input, is_workflow), has_data=has_data)
    if state.status == "SUCCEEDED":
        shown |= _data("output", _shown(state.output, is_workflow), has_data=has_data)
    texts = {"error": state.error, "cause": state.cause}
    shown |= {name: text for name, text in texts.items() if text is not None and has_data}
    since_ms = 0 if state.stopped_ms is None else now_ms - state.stopped_ms
    return {**shown, **_redrive_fields(state, since_ms)}


def _shown(value: Json, is_workflow: bool) -> Json:
    """Return the value, without secrets for a workflow. Data of state machines is returned
    unchanged.
    """
    return without_secrets(value) if is_workflow else value


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
        **shown_trace(origin),
    }


def _data(name: str, value: Json, *, has_data: bool) -> dict[str, Any]:
    details = {f"{name}Details": {"included": has_data}}
    return {name: json_text(value), **details} if has_data else details


def _redrive_fields(state: Execution | None, since_ms: int) -> dict[str, Any]:
    reason = refusal(state, since_ms)
    redrives = 0 if state is None else state.redrives
    is_child = state is not None and state.parent is not None and "lane" in state.parent
    by = "REDRIVABLE_BY_MAP_RUN" if is_child else "REDRIVABLE"
    fields: dict[str, Any] = {"redriveCount": redrives, "redriveStatus": by}
    if reason is None:
        return fields
    return {**fields, "redriveStatus": "NOT_REDRIVABLE", "redriveStatusReason": reason}


def refusal(state: Execution | None, since_ms: int) -> str | None:
    """Return why an execution that ended at that time cannot be redriven (AWS docs,
    DescribeExecution); None when it can.

    `state` is None when no worker has begun the execution. After an undo the text is Holdfast's
    own, because AWS has no undo.
    """
    match obstacle(state):
        case "UNDONE":
            return "Execution has undone what it had done and cannot be redriven"
        case "FULL":
            return "Execution history event limit exceeded"
        case None:
            is_late = since_ms > REDRIVABLE_MS
            return "Execution redrivable period exceeded" if is_late else None
        case status:
            return f"Execution is {status} and cannot be redriven"


def _is_deleting(service: Service, found: FoundExecution) -> Generator[Effect, Any, bool]:
    """Return True while the execution's state machine waits for the ends of other executions
    before it is removed.
    """
    machine = yield from find_created(service, found.origin["state_machine_name"])
    return machine is not None and machine.is_deleting


# -- stop and redrive ------------------------------------------------------------------------------


def stop_execution(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Store a stop. If the execution ends before it reads the stop, it keeps its own status."""
    found = yield from require_execution(service, request["executionArn"])
    if found.state is not None and found.state.stopped_ms is not None:
        redrives = yield from redrives_of(service.tenant, found.state)
        if redrives.pending is None:
            return {"stopDate": found.state.stopped_ms}
    now_ms = yield Clock()
    texts = {name: str(request[name]) for name in ("error", "cause") if name in request}
    at = (now_ms, chance)
    yield from request_control(service.tenant, found.run, found.state, at, texts)
    return {"stopDate": now_ms}


def redrive_execution(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Redrive an execution. A call that repeats a client token gets the first call's response.

    Raises ExecutionNotRedrivable, with the reason that DescribeExecution gives.
    """
    found = yield from require_execution(service, request["executionArn"])
    now_ms = yield Clock()
    token, state = request.get("clientToken"), found.state
    if state is not None:
        redrives = yield from redrives_of(service.tenant, state)
        if redrives.pending is not None:
            # Send the wake again. The caller may repeat the call because the first call crashed
            # before its wake, and an ended execution has no watchdog row that would lead to the
            # request. Lists need the row, which that call has not stored either.
            yield from wake_for_control(service.tenant, found.run, redrives.pending.control_id)
            yield note_redrive(service.tenant, state, now_ms)
        first = None if token is None else redrives.with_token(token, now_ms)
        if first is not None:
            return {"redriveDate": first.at_ms}
        state = as_redriven(state, redrives)
    stopped_ms = None if state is None else state.stopped_ms
    reason = refusal(state, now_ms - (stopped_ms or now_ms))
    if reason is None and (yield from _is_deleting(service, found)):
        reason = _DELETING
    if reason is None and "map_run_arn" in found.origin:
        reason = "Execution is redriven with its Map Run: redrive the parent execution"
    if reason is not None:
        raise StatesFault("ExecutionNotRedrivable", f"Execution Not Redrivable: '{reason}'")
    assert state is not None
    try:
        yield from hold_for_retry(service.known, service.tenant, state)
    except RequestError as error:
        raise StatesFault("ExecutionNotRedrivable", error.message) from None
    at = (now_ms, chance)
    yield from send_retry(service.tenant, found.run, state, at, by=service.caller, token=token)
    yield note_redrive(service.tenant, state, now_ms)
    return {"redriveDate": now_ms}
