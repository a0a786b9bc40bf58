"""Map runs: the progress of a distributed Map, read from its parent's log.

The name of a map run contains its execution (`core/run_ids.py`). The events of that execution say
the rest: `MapRunStarted` has its bounds, `ChildrenStarted` the numbers of items and executions,
`ChildEnded` each end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.limits import CHILDREN_AT_ONCE_MAX
from holdfast.runtime import inbox
from holdfast.runtime.commands.control import request_control
from holdfast.runtime.effects import Clock, Effect, Item, JsonResult, Query
from holdfast.runtime.storage import keys, tables
from holdfast.runtime.storage.histories import records_of
from holdfast.runtime.storage.json_values import json_text
from holdfast.runtime.storage.log import Log
from holdfast.stepfunctions.arns import MapRunArn, parse_map_run_arn
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import resource_not_found, validation
from holdfast.stepfunctions.finding import require_execution
from holdfast.stepfunctions.pages import page

#: The types of the last event of a map run, and the status for each.
_ENDS: Final[Mapping[str, str]] = {
    "MapRunSucceeded": "SUCCEEDED",
    "MapRunFailed": "FAILED",
    "MapRunAborted": "ABORTED",
}
#: For each status of an execution, the counter of the map run in which AWS counts it.
_COUNTED: Final[Mapping[str, str]] = {
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "TIMED_OUT": "timedOut",
    "ABORTED": "aborted",
}


@dataclass
class MapRunProgress:
    """The progress of a map run, updated event by event. `items` are by lane (the number of the
    child). `concurrency` 0: no bound was given.
    """

    arn: str
    frame: str
    event: int  # the id of the event that began the map run
    entry: int
    started_ms: int
    concurrency: int
    tolerated_count: int
    tolerated_percentage: float
    items: tuple[int, ...] = ()
    ended: dict[int, str] = field(default_factory=dict)
    status: str = "RUNNING"
    stopped_ms: int | None = None
    redrives: int = 0
    redriven_ms: int | None = None
    begun: int = 0  # the children that ran before the last redrive are below this number

    def redrive(self, at_ms: int) -> None:
        """Go on with the children that have not succeeded."""
        self.begun = self.opened
        self.ended = {lane: end for lane, end in self.ended.items() if end == "SUCCEEDED"}
        self.redrives += 1
        self.redriven_ms = at_ms
        self.status, self.stopped_ms = "RUNNING", None

    @property
    def unended(self) -> list[int]:
        """Return the children without an end, in the order in which they run: those that had begun
        before the last redrive come first.
        """
        return [lane for lane in range(len(self.items)) if lane not in self.ended]

    @property
    def opened(self) -> int:
        """Return how many children have begun: each child that has ended made room for one."""
        at_once = min(self.concurrency or CHILDREN_AT_ONCE_MAX, CHILDREN_AT_ONCE_MAX)
        running = self.unended[:at_once]
        return max([self.begun, *(lane + 1 for lane in (*running, *self.ended))])

    def update(self, bounds: Mapping[str, Any]) -> None:
        """Set the bounds that a request has changed."""
        self.concurrency = bounds.get("concurrency", self.concurrency)
        self.tolerated_count = bounds.get("count", self.tolerated_count)
        self.tolerated_percentage = float(bounds.get("percentage", self.tolerated_percentage))


def list_map_runs(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """List map runs, the newest first."""
    found = yield from require_execution(service, request["executionArn"])
    runs = yield from _map_runs(service, found.run)
    runs.reverse()
    scope = f"map runs#{found.run}"
    # Page by the id of the event that began the run. It stays the same when TTL deletes runs or
    # when new runs begin. A position in the list would change, and a page would skip or repeat
    # runs.
    shown, token = yield from page(
        service, request, runs, scope, lambda run: f"{run.event:09d}", is_descending=True
    )
    return {"mapRuns": [_listed(service, found.arn.text, run) for run in shown], **token}


def _listed(service: Service, execution_arn: str, run: MapRunProgress) -> dict[str, Any]:
    arn = parse_map_run_arn(run.arn)
    return {
        "executionArn": execution_arn,
        "mapRunArn": run.arn,
        "stateMachineArn": service.place.machine(f"{arn.machine}/{arn.label}"),
        "startDate": run.started_ms,
        **({} if run.stopped_ms is None else {"stopDate": run.stopped_ms}),
    }


def describe_map_run(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """Describe a map run. The counts are of executions and of their items. Items that a failed run
    never started are pending.
    """
    parent, run = yield from require_map_run(service, request["mapRunArn"])
    if run.status == "RUNNING":
        yield from _note_requests(service, parent, run)
    execution_arn = yield from _execution_arn(service, parent)
    redriven: dict[str, Any] = {}
    if run.redrives:
        redriven = {"redriveCount": run.redrives, "redriveDate": run.redriven_ms}
    shown: dict[str, Any] = {
        **redriven,
        "mapRunArn": run.arn,
        "executionArn": execution_arn,
        "status": run.status,
        "startDate": run.started_ms,
        "maxConcurrency": run.concurrency,
        "toleratedFailurePercentage": run.tolerated_percentage,
        "toleratedFailureCount": run.tolerated_count,
        "itemCounts": _counts(run, run.items),
        "executionCounts": _counts(run, [1] * len(run.items)),
    }
    return shown if run.stopped_ms is None else {**shown, "stopDate": run.stopped_ms}


def _counts(run: MapRunProgress, weights: Iterable[int]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    open_as = _open_children(run)
    for lane, weight in enumerate(weights):
        status = run.ended.get(lane)
        counts[_COUNTED[status] if status is not None else open_as[lane]] += weight
        counts["total"] += weight
    written = counts["succeeded"] if run.status == "SUCCEEDED" else 0
    names = [*_COUNTED.values(), "pending", "running", "total"]
    if run.redrives:
        names.append("pendingRedrive")
    return {**{name: counts[name] for name in names}, "resultsWritten": written}


def _open_children(run: MapRunProgress) -> dict[int, str]:
    """Return the counter of each child without an end. As many run at once as are allowed.

    When the run has ended, a child that ran was stopped (AWS docs, MapRunExecutionCounts).
    """
    at_once = min(run.concurrency or CHILDREN_AT_ONCE_MAX, CHILDREN_AT_ONCE_MAX)
    running = set(run.unended[:at_once])
    ran = "running" if run.status == "RUNNING" else "aborted"
    return {
        lane: ran if lane in running else "pendingRedrive" if lane < run.begun else "pending"
        for lane in run.unended
    }


#: The members of the request that are bounds, and the names of the bounds in the log.
_BOUNDS: Final[Mapping[str, str]] = {
    "maxConcurrency": "concurrency",
    "toleratedFailureCount": "count",
    "toleratedFailurePercentage": "percentage",
}


def update_map_run(service: Service, request: Mapping[str, Any], chance: bytes) -> JsonResult:
    """Store a change of the bounds of a running map run. Its parent applies the change.

    A higher concurrency starts children at once; a lower one stops none. If more items have failed
    than are now tolerated, the run fails.
    """
    parse_map_run_arn(request["mapRunArn"])
    wanted = {bound: request[name] for name, bound in _BOUNDS.items() if name in request}
    if not wanted:
        raise validation(
            "At least one of the parameters to be updated must be specified",
            "MISSING_REQUIRED_PARAMETER",
        )
    parent, run = yield from require_map_run(service, request["mapRunArn"])
    if run.status != "RUNNING":
        raise validation(
            f"Map Run is {run.status} and cannot be updated", "CANNOT_UPDATE_COMPLETED_MAP_RUN"
        )
    log = Log(service.tenant, parent, "api", "")
    yield from log.load()
    now_ms = yield Clock()
    fields: Item = {"kind": inbox.BOUNDS, "entry": run.entry, "bounds": json_text(wanted)}
    yield from request_control(service.tenant, parent, log.state, (now_ms, chance), fields)
    return {}


def _note_requests(
    service: Service, parent: str, run: MapRunProgress
) -> Generator[Effect, Any, None]:
    """Apply the stored changes of the bounds, some of which the parent may not have applied yet.

    A change that was applied is applied again, which leaves the last one of each bound in force.
    """
    items: Iterable[Item] = yield Query(
        tables.MAIL, keys.inbox(service.tenant, parent), begins_with=keys.CONTROL_PREFIX
    )
    for item in items:
        if item.get("kind") == inbox.BOUNDS and int(item["entry"]) == run.entry:
            run.update(inbox.bounds_in(item))


# -- reading ---------------------------------------------------------------------------------------


def require_map_run(
    service: Service, text: str
) -> Generator[Effect, Any, tuple[str, MapRunProgress]]:
    """Return the id of the parent execution, and the run. Raises InvalidArn, ResourceNotFound."""
    arn: MapRunArn = parse_map_run_arn(text)
    secrets = service.keys.secrets.values()
    parents = keys.map_runs(service.tenant, arn.identifier, secrets)
    for parent, _entry in parents if arn.place == service.place else []:
        for run in (yield from _map_runs(service, parent)):
            if run.arn == text:
                return parent, run
    raise resource_not_found(text)


def _map_runs(service: Service, run: str) -> Generator[Effect, Any, list[MapRunProgress]]:
    items = yield Query(tables.EXECUTIONS, keys.execution(service.tenant, run))
    records = yield from records_of(service.tenant, run, items)
    return _runs_in(event for record in records for event in record.events)


def _execution_arn(service: Service, run: str) -> Generator[Effect, Any, str]:
    """Return the ARN from the state, because TTL may have deleted the event with it."""
    log = Log(service.tenant, run, "api", "")
    yield from log.load()
    assert log.state is not None
    assert log.state.origin is not None
    return log.state.origin["execution_arn"]


def _runs_in(events: Iterable[Event]) -> list[MapRunProgress]:
    """Return every map run in the events, in the order of their starts."""
    found: list[MapRunProgress] = []
    open_runs: dict[str, MapRunProgress] = {}
    for event in events:
        frame = str(event.holdfast.get("frame", ""))
        if event.type == "MapRunStarted":
            open_runs[frame] = _started(event, frame)
            found.append(open_runs[frame])
        elif event.type == "MapRunRedriven":
            arn = event.details["mapRunArn"]
            open_runs[frame] = next(run for run in found if run.arn == arn)
            open_runs[frame].redrive(event.at_ms)
        elif event.type in TERMINAL_EVENTS:
            for run in open_runs.values():
                _end(run, "ABORTED", event.at_ms)
            open_runs.clear()
        elif frame in open_runs:
            _note(open_runs[frame], event)
            if open_runs[frame].status != "RUNNING":
                del open_runs[frame]
    return found


def _started(event: Event, frame: str) -> MapRunProgress:
    own = event.holdfast
    return MapRunProgress(
        arn=str(event.details["mapRunArn"]),
        frame=frame,
        event=event.id,
        entry=int(own["entry"]),
        started_ms=event.at_ms,
        concurrency=own.get("concurrency") or 0,
        tolerated_count=own.get("count") or 0,
        tolerated_percentage=float(own.get("percentage") or 0),
    )


def _note(run: MapRunProgress, event: Event) -> None:
    match event.type:
        case "ChildrenStarted":
            run.items = tuple(event.holdfast["items"])
        case "ChildEnded":
            run.ended[event.holdfast["lane"]] = event.holdfast["result"]["status"]
        case "MapRunUpdated":
            run.update(event.holdfast)
        case ending if ending in _ENDS:
            _end(run, _ENDS[ending], event.at_ms)
        case _:
            pass


def _end(run: MapRunProgress, status: str, at_ms: int) -> None:
    run.status, run.stopped_ms = status, at_ms
