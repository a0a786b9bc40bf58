"""The events of distributed Maps: request the items, start the children, write the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from holdfast.asl.program import Json, TaskKind
from holdfast.core.apply.frames import Apply, begun, frame_of_event, moved, over
from holdfast.core.bounds import CHANGED, FIELDS, Bounds
from holdfast.core.events import Event
from holdfast.core.results import Results
from holdfast.core.state import (
    Attempt,
    ChildExecutions,
    ChildResult,
    Execution,
    FailedState,
    Frame,
    Lease,
    WaitingFor,
)


def _map_run_event(state: Execution, event: Event) -> Execution:
    return moved(state, frame_of_event(state, event), event)


def _asked(kind: TaskKind) -> Apply:
    def apply_asked(state: Execution, event: Event) -> Execution:
        """Record the request for an attempt that reads the Map's items or writes its results. It is
        scheduled like the attempt of a task.
        """
        own = event.holdfast
        frame = frame_of_event(state, event)
        waiting = Attempt(
            entry=own["entry"],
            attempt=own["attempt"],
            kind=kind,
            target=own["target"],
            arguments=own["arguments"],
            timeout_seconds=None,
            due_ms=event.at_ms,
            claim=Lease(*own["claim"]) if "claim" in own else None,
        )
        if isinstance(frame.waiting, ChildExecutions):
            numbers = replace(frame.waiting, inputs=[], results=Results())
            waiting = replace(waiting, children=numbers)
        return moved(state, frame, event, waiting=waiting)

    return apply_asked


def _children_started(state: Execution, event: Event) -> Execution:
    own = event.holdfast
    waiting = ChildExecutions(
        entry=own["entry"],
        map_run_arn=own["arn"],
        inputs=own["inputs"],
        items=own["items"],
        concurrency=own["concurrency"],
        failures_max=own["failures_max"],
        started=min(own["concurrency"], len(own["inputs"])),
        results=Results(),
        count=own.get("count"),
        percentage=own.get("percentage"),
    )
    state = begun(state, *((waiting.entry, lane) for lane in range(waiting.started)))
    return moved(state, frame_of_event(state, event), event, waiting=waiting)


def _child_ended(state: Execution, event: Event) -> Execution:
    frame, own = frame_of_event(state, event), event.holdfast
    children = frame.waiting
    assert isinstance(children, ChildExecutions)
    results = children.results.with_result(own["lane"], own["result"])
    state = over(state, (children.entry, own["lane"]))
    return _with_children(state, frame, event, replace(children, results=results))


def _with_children(
    state: Execution, frame: Frame, event: Event, children: ChildExecutions
) -> Execution:
    """Return the state after a change of the children or of their bounds: as many children are
    started as now may run.
    """
    waiting, opened = with_room_used(children)
    state = begun(state, *((children.entry, lane) for lane in opened))
    return moved(state, frame, event, waiting=waiting)


def with_room_used(children: ChildExecutions) -> tuple[ChildExecutions, list[int]]:
    """Return the children after as many more are opened as may run, and the lanes of these. Those
    that wait for their redrive come first.
    """
    # A lower bound stops no child, so more children than the bound may run for a while.
    running = children.started - len(children.results) - len(children.held)
    room = max(0, children.concurrency - running)
    again, held = children.held[:room], children.held[room:]
    started = min(children.started + room - len(again), len(children.inputs))
    opened = [*again, *range(children.started, started)]
    return replace(children, started=started, held=held), opened


def children_to_resume(waiting: WaitingFor) -> ChildExecutions | None:
    """Return the children of a distributed Map that ended early; None for any other wait, and for a
    map run that has not started its children.
    """
    match waiting:
        case ChildExecutions():
            return waiting
        case FailedState(children=children):
            return children
        case Attempt(children=ChildExecutions() as numbers, arguments=dict() as written):
            inputs = cast("Sequence[Json]", written["inputs"])
            results = cast("Sequence[ChildResult | None]", written["results"])
            ended = [[lane, one] for lane, one in enumerate(results) if one is not None]
            return replace(numbers, inputs=inputs, results=Results(ended))
        case _:
            return None


def redriven(children: ChildExecutions, at_ms: int) -> ChildExecutions:
    """Return the children of a redriven map run: the results of those that have succeeded stay, and
    the others that had started wait for their redrive (AWS docs, "Redriving Map Runs").
    """
    results: Results[ChildResult] = Results(
        pair for pair in children.results.pairs if pair[1]["status"] == "SUCCEEDED"
    )
    again = tuple(lane for lane in range(children.started) if lane not in results)
    return replace(
        children,
        results=results,
        redrives=children.redrives + 1,
        redriven_ms=at_ms,
        begun=children.started,
        held=again,
    )


def _updated(state: Execution, event: Event) -> Execution:
    """Apply new bounds. During the reading of the items they are kept until the children start."""
    own = event.holdfast
    state = state._replace(last_control=own["control"])
    frame = frame_of_event(state, event)
    wanted = {name: own[name] for name in FIELDS if name in own}
    match frame.waiting:
        case ChildExecutions() as children:
            bounds = Bounds(children.concurrency, children.count, children.percentage)
            bounds = bounds.changed(wanted)
            changed = replace(
                children,
                concurrency=bounds.at_once,
                count=bounds.count,
                percentage=bounds.percentage,
                failures_max=bounds.failures_max(sum(children.items)),
            )
            return _with_children(state, frame, event, changed)
        case Attempt(kind="read", arguments=dict() as arguments) as reading:
            kept = {**cast("dict[str, Json]", arguments.get(CHANGED, {})), **wanted}
            waiting = replace(reading, arguments={**arguments, CHANGED: kept})
            return moved(state, frame, event, waiting=waiting)
        case _:
            # The results are being written, and no bound matters any longer.
            return state


HANDLERS: Final[Mapping[str, Apply]] = {
    "MapRunStarted": _map_run_event,
    "MapRunSucceeded": _map_run_event,
    "MapRunFailed": _map_run_event,
    "ItemsAsked": _asked("read"),
    "ChildrenStarted": _children_started,
    "ChildEnded": _child_ended,
    "MapRunUpdated": _updated,
    "MapRunRedriven": _map_run_event,
    "ResultsAsked": _asked("write"),
}
