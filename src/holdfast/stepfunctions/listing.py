"""ListExecutions: the newest first, including executions that were just started.

Two sources are merged by start time. The list index has executions that wait or have ended, by
status, a moment late. The rows of starts (`start_rows.py`) have executions that are not in the
index yet; the newest record of the log gives the status of such an execution. A page ends where the
first source ends, so no execution between two pages is lost. It may be shorter than requested.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.state import STATUSES
from holdfast.errors import HoldfastError, is_damage
from holdfast.runtime.commands.redrives import last_redrive_ms
from holdfast.runtime.commands.start_rows import LISTED_MS, Start, read_start
from holdfast.runtime.effects import Clock, Effect, Item, JsonResult, Query
from holdfast.runtime.listing import NEWEST, ListEntry, Page, cut_page, read_page
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.log import Log
from holdfast.runtime.storage.spread import MACHINE_STARTS
from holdfast.stepfunctions.arns import ArnRegion, MachineArn, parse_machine_arn, parse_map_run_arn
from holdfast.stepfunctions.catalogue import Service
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """The executions that a request lists: of a machine or, with `map_run`, of a map run.

    `is_workflow`: the machine is a deployed workflow.
    """

    machine: MachineArn
    statuses: tuple[str, ...]
    redrive: str | None
    map_run: str | None = None
    is_workflow: bool = False

    @property
    def workflow(self) -> str:
        if self.map_run is not None:
            return keys.map_run_workflow(self.map_run)
        if self.is_workflow:
            return self.machine.name
        return keys.machine_workflow(self.machine.name)

    def takes(self, listed: ListEntry) -> bool:
        machine = self.machine
        return (
            listed.status in self.statuses
            and (machine.version is None or listed.version == str(machine.version))
            and (machine.alias is None or listed.alias == machine.alias)
            and (self.redrive is None or (self.redrive == "REDRIVEN") == (listed.redrives > 0))
        )


def list_executions(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """List executions. Costs at most eight queries of the list, one for each shard of starts, and
    one for each listed execution that was redriven.
    """
    wanted = yield from _wanted(service, request)
    scope = f"executions#{wanted.machine.text}#{wanted.statuses}#{wanted.redrive}"
    before, size = NEWEST, page_size(request)
    if "nextToken" in request:
        before = read_token(service, request["nextToken"], scope)
    page = yield from _found(service, wanted, before, size)
    if not page.entries and wanted.map_run is not None:
        # A map run with children exists. Without children, read the log of its parent to find out
        # whether it does.
        yield from require_map_run(service, wanted.map_run)
    shown = []
    for listed in page.entries:
        date = (yield from last_redrive_ms(service.tenant, listed.run)) if listed.redrives else None
        redriven = {} if date is None else {"redriveDate": date}
        shown.append({**_shown(service.place, wanted, listed), **redriven})
    answer = {"executions": shown}
    if page.after is not None:
        return {**answer, "nextToken": make_token(service, page.after, scope)}
    return answer


def _wanted(service: Service, request: Mapping[str, Any]) -> Generator[Effect, Any, Wanted]:
    machine_arn, map_run_arn = request.get("stateMachineArn"), request.get("mapRunArn")
    if (machine_arn is None) == (map_run_arn is None):
        raise validation("Exactly one of stateMachineArn and mapRunArn must be specified")
    status = request.get("statusFilter")
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


# -- sources ---------------------------------------------------------------------------------------


def _found(
    service: Service, wanted: Wanted, before: str, size: int
) -> Generator[Effect, Any, Page]:
    """Return the matching executions from both sources, newest first."""
    now_ms = yield Clock()
    page = yield from read_page(
        service.tenant,
        service.spread,
        statuses=wanted.statuses,
        workflow=wanted.workflow,
        before=before,
        limit=size,
        now_ms=now_ms,
    )
    if wanted.map_run is not None:
        return _fitting(wanted, page.entries, page.after or "", size)
    indexed = {entry.run: entry for entry in page.entries}
    starts, floor = yield from _starts(service, wanted, before, size)
    for _, start in starts:
        if start.run not in indexed:
            begun = yield from _of_log(service.tenant, start)
            if begun is not None:
                indexed[start.run] = begun
    return _fitting(wanted, indexed.values(), max(page.after or "", floor), size)


def _fitting(wanted: Wanted, found: Iterable[ListEntry], read_to: str, size: int) -> Page:
    return cut_page(filter(wanted.takes, found), read_to, size)


def _starts(
    service: Service, wanted: Wanted, before: str, size: int
) -> Generator[Effect, Any, tuple[list[tuple[str, Start]], str]]:
    now_ms = yield Clock()
    young = f"{now_ms - LISTED_MS:015d}#"
    found: list[tuple[str, Start]] = []
    floor = ""
    for shard in range(MACHINE_STARTS.count(service.spread.read)):
        partition = keys.starts(service.tenant, wanted.workflow, shard)
        items: Iterable[Item] = yield Query(
            tables.MAIL, partition, after=young, until=before, reverse=True, limit=size + 1
        )
        rows = [(str(item["sk"]), read_start(item)) for item in items if item["sk"] != before]
        found += rows[:size]
        floor = max(floor, rows[size - 1][0] if len(rows) >= size else "")
    return found, floor


def _of_log(tenant: str, start: Start) -> Generator[Effect, Any, ListEntry | None]:
    """Return an execution that is not in the index yet, from its log or from its start.

    Return None for the row of a repeated nested start: another row of the execution has the start
    time.
    """
    log = Log(tenant, start.run, "api", "")
    try:
        yield from log.load()
    except HoldfastError as error:
        # Continue with the other executions, which a damaged log must not hide. If this one has
        # ended, its entry in the index lists it.
        if not is_damage(error):
            raise
    state, origin = log.state, start.origin
    assert origin is not None
    if state is not None and state.started_ms != start.started_ms:
        return None
    return ListEntry(
        run=start.run,
        started_ms=start.started_ms,
        name=start.name or start.run,
        workflow=start.workflow,
        status="RUNNING" if state is None else state.status,
        definition=start.definition[:12],
        stopped_ms=None if state is None else state.stopped_ms,
        machine_name=origin["execution_name"],
        version=origin.get("version_arn", "").rpartition(":")[2],
        alias=origin.get("alias_arn", "").rpartition(":")[2],
        redrives=0 if state is None else state.redrives,
    )


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
