"""The events of distributed Maps: request the items, start the children, write the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from holdfast.asl.program import TaskKind
from holdfast.core.apply.frames import Apply, begun, frame_of_event, moved, over
from holdfast.core.events import Event
from holdfast.core.state import Attempt, ChildExecutions, Execution, Lease


def _map_run_event(state: Execution, event: Event) -> Execution:
    return moved(state, frame_of_event(state, event), event)


def _asked(kind: TaskKind) -> Apply:
    def apply_asked(state: Execution, event: Event) -> Execution:
        """Record the request for an attempt that reads the Map's items or writes its results. It is
        scheduled like the attempt of a task.
        """
        own = event.holdfast
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
        return moved(state, frame_of_event(state, event), event, waiting=waiting)

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
        results={},
    )
    state = begun(state, *((waiting.entry, lane) for lane in range(waiting.started)))
    return moved(state, frame_of_event(state, event), event, waiting=waiting)


def _child_ended(state: Execution, event: Event) -> Execution:
    frame, own = frame_of_event(state, event), event.holdfast
    children = frame.waiting
    assert isinstance(children, ChildExecutions)
    waiting = replace(
        children,
        started=min(children.started + 1, len(children.inputs)),
        results={**children.results, own["lane"]: own["result"]},
    )
    state = over(state, (children.entry, own["lane"]))
    state = begun(state, *((children.entry, n) for n in range(children.started, waiting.started)))
    return moved(state, frame, event, waiting=waiting)


HANDLERS: Final[Mapping[str, Apply]] = {
    "MapRunStarted": _map_run_event,
    "MapRunSucceeded": _map_run_event,
    "MapRunFailed": _map_run_event,
    "ItemsAsked": _asked("read"),
    "ChildrenStarted": _children_started,
    "ChildEnded": _child_ended,
    "ResultsAsked": _asked("write"),
}
