"""ListExecutions: the newest first, including executions that were just started."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from holdfast.core.state import STATUSES
from holdfast.runtime.commands.redrives import last_redrive_ms
from holdfast.runtime.effects import Effect, JsonResult
from holdfast.runtime.listing import NEWEST, ListEntry
from holdfast.stepfunctions.arns import ArnRegion, MachineArn, parse_machine_arn, parse_map_run_arn
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.execution_lists import Wanted, page_of
from holdfast.stepfunctions.faults import (
    resource_not_found,
    state_machine_does_not_exist,
    type_not_supported,
    validation,
)
from holdfast.stepfunctions.lookup import find_machine, is_here
from holdfast.stepfunctions.map_runs import require_map_run
from holdfast.stepfunctions.pages import make_token, page_size, read_token
from holdfast.stepfunctions.workflows import own_name


def list_executions(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """List executions. Costs at most eight queries of the list, one for each shard of starts, and
    one for each listed execution that was redriven.
    """
    wanted = yield from _wanted(service, request)
    scope = f"executions#{wanted.machine.text}#{wanted.statuses}#{wanted.redrive}"
    before, size = NEWEST, page_size(request)
    if "nextToken" in request:
        before = yield from read_token(service, request["nextToken"], scope)
    page = yield from page_of(service.tenant, service.spread, wanted, before, size)
    items: Sequence[int] = ()
    if wanted.map_run is not None:
        items = (yield from require_map_run(service, wanted.map_run))[1].items
    shown = []
    for listed in page.entries:
        date = (yield from last_redrive_ms(service.tenant, listed.run)) if listed.redrives else None
        redriven = {} if date is None else {"redriveDate": date}
        shown.append({**_shown(service.place, wanted, listed), **redriven, **_items(listed, items)})
    answer = {"executions": shown}
    if page.after is not None:
        return {**answer, "nextToken": (yield from make_token(service, page.after, scope))}
    return answer


def _items(listed: ListEntry, items: Sequence[int]) -> dict[str, int]:
    """Return the number of items of a child of a map run: of its lane, the last number of its
    id.
    """
    lane = listed.run.rpartition(".")[2]
    return {"itemCount": items[int(lane)]} if items else {}


def _wanted(service: Service, request: Mapping[str, Any]) -> Generator[Effect, Any, Wanted]:
    machine_arn, map_run_arn = request.get("stateMachineArn"), request.get("mapRunArn")
    if machine_arn is None and map_run_arn is None:
        # AWS's text
        text = "Must provide a StateMachine ARN or MapRun ARN"
        raise validation(text, "MISSING_REQUIRED_PARAMETER")
    if machine_arn is not None and map_run_arn is not None:
        raise validation("Exactly one of stateMachineArn and mapRunArn must be specified")
    status = request.get("statusFilter")
    if status == "PENDING_REDRIVE" and map_run_arn is None:
        # AWS docs, ListExecutions § statusFilter
        raise validation("mapRunArn must be specified with the statusFilter PENDING_REDRIVE")
    # The filter RUNNING also finds an execution that was redriven and has not continued yet.
    statuses = STATUSES if status is None else (status,)
    redrive = request.get("redriveFilter")
    if map_run_arn is not None:
        return _children(service, map_run_arn, statuses, redrive)
    machine = parse_machine_arn(str(machine_arn))
    found = None
    if is_here(service, machine):
        found = yield from find_machine(service, machine.name)
    if found is None:
        raise state_machine_does_not_exist(machine.text)
    if found.now.type == "EXPRESS":
        raise type_not_supported()
    is_workflow = machine.name in service.workflows
    return Wanted(machine, statuses, redrive, is_workflow=is_workflow)


def _children(
    service: Service, text: str, statuses: tuple[str, ...], redrive: str | None
) -> Wanted:
    arn = parse_map_run_arn(text)
    if arn.place != service.place:
        raise resource_not_found(text)
    machine = MachineArn(text, arn.place, arn.machine, None, arn.label)
    return Wanted(machine, statuses, redrive, text)


# -- display ---------------------------------------------------------------------------------------


def _name_of(listed: ListEntry) -> str:
    """Return the name in the ARN. For a workflow's execution without a name the list has its id."""
    if listed.machine_name is not None:
        return listed.machine_name
    return own_name(listed.run) if listed.name == listed.run else listed.name


def _shown(place: ArnRegion, wanted: Wanted, listed: ListEntry) -> dict[str, Any]:
    machine, name = wanted.machine, _name_of(listed)
    shown: dict[str, Any] = {
        "executionArn": place.execution(machine.name, name, machine.label),
        "name": name,
        "redriveCount": listed.redrives,
        "startDate": listed.started_ms,
        "stateMachineArn": place.machine(machine.name),
        "status": listed.status,
    }
    if wanted.map_run is not None:
        shown["stateMachineArn"] = place.machine(f"{machine.name}/{machine.label}")
        shown["mapRunArn"] = wanted.map_run
    if listed.version:
        shown["stateMachineVersionArn"] = place.version(machine.name, int(listed.version))
    if listed.alias:
        shown["stateMachineAliasArn"] = place.alias(machine.name, listed.alias)
    return shown if listed.stopped_ms is None else {**shown, "stopDate": listed.stopped_ms}
