"""`apply(state, event) -> state`: the meaning of every event, and the only way a state changes.

Rules of this file:
* It reads nothing but the state and the event: no program, no clock, no expression.
* `advance` builds its next state through it too, so the state in hand and the folded history
  cannot differ.
* A frame is found by `holdfast.frame` (absent: the root), never by counting or by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl.program import TaskKind
from holdfast.core.events import Event
from holdfast.core.retry import poll_seconds
from holdfast.core.state import (
    ATTEMPTED,
    NESTED_EXECUTION,
    ROOT,
    Attempt,
    Awaiting,
    Children,
    Claim,
    Delay,
    Entered,
    Execution,
    Exited,
    Failed,
    Frame,
    Lanes,
    Status,
    Timer,
)
from holdfast.errors import HoldfastBug
from holdfast.limits import CLOCK_ERROR_MS

_TERMINAL: Final[Mapping[str, Status]] = {
    "ExecutionSucceeded": "SUCCEEDED",
    "ExecutionFailed": "FAILED",
    "ExecutionTimedOut": "TIMED_OUT",
    "ExecutionAborted": "ABORTED",
}


def fold(events: Iterable[Event], state: Execution | None = None) -> Execution | None:
    """-> the state after all events, from nothing or from a snapshot's state."""
    for event in events:
        state = apply(state, event)
    return state


def apply(state: Execution | None, event: Event) -> Execution:
    """Raises HoldfastBug when the event cannot follow the state: a torn or foreign history."""
    if state is None:
        if event.type != "ExecutionStarted":
            raise HoldfastBug(f"a history begins with {event.type}, expected ExecutionStarted")
        return _started(event)
    if state.is_ended and event.type != "ExecutionRedriven":
        raise HoldfastBug(f"{event.type} follows the end of execution {state.run}")
    if event.id and event.id != state.last_event + 1:
        raise HoldfastBug(f"{event.type} has id {event.id} after event {state.last_event}")
    if event.type in _TERMINAL:
        state = _ended(state, event, _TERMINAL[event.type])
    else:
        state = _handler(event.type)(state, event)
    if event.id and state.last_event != event.id:
        return state._replace(last_event=event.id)
    return state


_Apply = Callable[[Execution, Event], Execution]


@functools.cache
def _handler(event_type: str) -> _Apply:
    found = _HANDLERS.get(event_type)
    if found is not None:
        return found
    if event_type.endswith("StateEntered"):
        return _entered
    if event_type.endswith("StateExited"):
        return _exited
    raise HoldfastBug(f"the history holds an event of unknown type {event_type}")


def _started(event: Event) -> Execution:
    own = event.holdfast
    return Execution(
        run=own["run"],
        name=own.get("name"),
        workflow=own["workflow"],
        definition=own["definition"],
        input=event.details["input"],
        started_ms=event.at_ms,
        due_ms=own.get("due"),
        used_events={},
        frames={},
        origin=own.get("origin"),
    )


def _ended(state: Execution, event: Event, status: Status) -> Execution:
    return state._replace(
        status=status,
        stopped_ms=event.at_ms,
        output=event.details.get("output"),
        error=event.details.get("error"),
        cause=event.details.get("cause"),
        last_control=event.holdfast.get("control", state.last_control),
        frames={},
        resting={} if status == "SUCCEEDED" else state.frames,
    )


def _redriven(state: Execution, event: Event) -> Execution:
    """It goes on where it stopped: every state that was open is entered again, with its input.

    Of a Parallel or Map, lanes that had ended are not run again (AWS docs, RedriveExecution). One
    whose iteration had entered no state begins anew as a whole.
    """
    frames: dict[str, Frame] = {}
    unbegun = {frame.owner for frame in state.resting.values() if not frame.position}
    for frame in state.resting.values():
        if frame.owner is not None and not _has_lanes(frames.get(frame.owner)):
            continue
        lanes = None if frame.id in unbegun else _lanes_of(frame)
        waiting = Entered() if lanes is None else lanes
        frames[frame.id] = frame._replace(previous=event.id, retries={}, waiting=waiting)
    return state._replace(
        status="RUNNING",
        stopped_ms=None,
        error=None,
        cause=None,
        frames=frames,
        resting={},
        stopping=None,
        redrives=state.redrives + 1,
        last_control=event.holdfast["control"],
        # It is watched and listed anew.
        opened_at=None,
        due_ms=event.holdfast.get("due"),
    )


def _lanes_of(frame: Frame) -> Lanes | None:
    match frame.waiting:
        case Lanes() as lanes:
            return lanes
        case Failed(lanes=lanes):
            return lanes
        case _:
            return None


def _has_lanes(owner: Frame | None) -> bool:
    return owner is not None and isinstance(owner.waiting, Lanes)


# -- frames ----------------------------------------------------------------------------------------


def _frame(state: Execution, event: Event) -> Frame:
    frame = state.frames.get(event.holdfast.get("frame", ROOT))
    if frame is None:
        raise HoldfastBug(f"{event.type} belongs to frame {event.holdfast.get('frame')!r}: gone")
    return frame


def _moved(state: Execution, frame: Frame, event: Event, **changes: Any) -> Execution:
    frame = frame._replace(previous=event.id or frame.previous, **changes)
    return _with(state, frame, event)


def _with(state: Execution, frame: Frame, event: Event) -> Execution:
    # Both at once: this is done for every event, and copying an execution is most of its cost.
    return state.moved({**state.frames, frame.id: frame}, event.id or state.last_event)


def _entered(state: Execution, event: Event) -> Execution:
    frame = state.frames.get(event.holdfast.get("frame", ROOT))
    if frame is None:
        state, frame = _new_frame(state, event)
    entered = Frame(
        id=frame.id,
        owner=frame.owner,
        position=event.details["name"],
        input=event.details["input"],
        variables=frame.variables,
        previous=event.id,
        entry_previous=event.previous,
        entered_event=event.id,
        entered_ms=event.at_ms,
        retries={},
        waiting=Entered(),
    )
    return _with(state, entered, event)


def _new_frame(state: Execution, event: Event) -> tuple[Execution, Frame]:
    """The root, or a lane of the entry that its id names; the lane counts as started."""
    frame_id: str = event.holdfast.get("frame", ROOT)
    owner = None
    if frame_id != ROOT:
        opener = state.frame_of(int(frame_id.partition(".")[0]))
        if opener is None or not isinstance(opener.waiting, Lanes):
            raise HoldfastBug(f"{event.type} opens lane {frame_id!r} that nothing waits for")
        owner = opener.id
        lanes = opener.waiting._replace(started=opener.waiting.started + 1)
        state = state.with_frame(opener._replace(waiting=lanes))
    frame = Frame(
        id=frame_id,
        owner=owner,
        position="",
        input=None,
        variables={},
        previous=event.previous,
        entry_previous=0,
        entered_event=0,
        entered_ms=event.at_ms,
        retries={},
        waiting=Exited(),
    )
    return state, frame


def _exited(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    if isinstance(frame.waiting, Failed) and frame.waiting.lanes is not None:
        state = _without_lanes(state, frame)  # caught: nobody goes on with them
    assigned = event.details.get("assignedVariables")
    variables = {**frame.variables, **assigned} if assigned else frame.variables
    frame = Frame(
        id=frame.id,
        owner=frame.owner,
        position=frame.position,
        input=event.details["output"],
        variables=variables,
        previous=event.id,
        entry_previous=frame.entry_previous,
        entered_event=frame.entered_event,
        entered_ms=frame.entered_ms,
        retries=frame.retries,
        waiting=Exited(),
    )
    state = _with(state, frame, event)
    return _lane_ended(state, frame, event) if event.holdfast.get("end") else state


def _lane_ended(state: Execution, frame: Frame, event: Event) -> Execution:
    assert frame.owner is not None
    owner = state.frames[frame.owner]
    assert isinstance(owner.waiting, Lanes)
    results = {**owner.waiting.results, frame.lane: frame.input}
    frames = dict(state.frames)
    del frames[frame.id]
    # What the owner does next hangs off the end of the lane that ended last.
    frames[owner.id] = owner._replace(
        previous=event.id, waiting=owner.waiting._replace(results=results)
    )
    return state.moved(frames, event.id or state.last_event)


def _without_lanes(state: Execution, frame: Frame) -> Execution:
    """Drops every frame below `frame`; frames stand in the order in which they were opened."""
    dropped = {frame.id}
    kept: dict[str, Frame] = {}
    for key, other in state.frames.items():
        if other.owner in dropped:
            dropped.add(key)
        else:
            kept[key] = other
    return state._replace(frames=kept)


# -- tasks -----------------------------------------------------------------------------------------


#: How a resource ends that is answered after its call.
_ANSWERED_LATER: Final[Mapping[str, TaskKind]] = {
    ".waitForTaskToken": "callback",
    ".sync": "sync",
    ".sync:2": "sync",
}


def kind_of(event: Event) -> tuple[TaskKind, str]:
    """-> what a scheduled task asks for, and its target (see program.Task)."""
    resource = event.details["resource"]
    if event.type == "LambdaFunctionScheduled":
        return "lambda", resource
    if event.type == "ActivityScheduled":
        return "activity", resource
    service = event.details["resourceType"]
    if service == "holdfast":
        return _own_kind_of(resource)
    for ending, kind in _ANSWERED_LATER.items():
        if resource.endswith(ending):
            return kind, f"{service}:{resource.removesuffix(ending)}"
    return "service", f"{service}:{resource}"


def _own_kind_of(resource: str) -> tuple[TaskKind, str]:
    """ "task:ship" -> task, ship."""
    match resource.partition(":"):
        case "task", ":", target:
            return "task", target
        case "pure", ":", target:
            return "pure", target
        case "event.waitForTaskToken", "", "":
            return "event", ""
        case "ask.waitForTaskToken", "", "":
            return "ask", ""
        case "token.waitForTaskToken", "", "":
            return "token", ""
        case _:
            raise HoldfastBug(f"the history schedules an unknown resource {resource!r}")


def _task_scheduled(state: Execution, event: Event) -> Execution:
    frame, own = _frame(state, event), event.holdfast
    kind, target = kind_of(event)
    waiting: Attempt | Awaiting
    if kind in ATTEMPTED:
        waiting = Attempt(
            entry=own["entry"],
            attempt=own["attempt"],
            kind=kind,
            target=target,
            arguments=_arguments(event),
            timeout_seconds=event.details.get("timeoutInSeconds"),
            due_ms=own.get("due", event.at_ms),
            claim=Claim(*own["claim"]) if "claim" in own else None,
            heartbeat_seconds=event.details.get("heartbeatInSeconds"),
            credentials=event.details.get("taskCredentials", {}).get("roleArn"),
        )
    else:
        waiting = _awaiting(event, kind, target)
    state = state._replace(next_entry=max(state.next_entry, own["entry"] + 1))
    return _moved(state, frame, event, retries=_counted(frame, own), waiting=waiting)


def _arguments(event: Event) -> Any:
    details = event.details
    return details["parameters"] if "parameters" in details else details["input"]


def _awaiting(event: Event, kind: TaskKind, target: str) -> Awaiting:
    since_ms = event.holdfast.get("due", event.at_ms)
    heartbeat = event.details.get("heartbeatInSeconds")
    return Awaiting(
        entry=event.holdfast["entry"],
        attempt=event.holdfast["attempt"],
        kind=kind,
        arguments=_arguments(event),
        since_ms=since_ms,
        due_ms=_due_ms(since_ms, event.details.get("timeoutInSeconds")),
        heartbeat_seconds=heartbeat,
        heartbeat_due_ms=_due_ms(since_ms, heartbeat),
        target=target,
    )


def _due_ms(since_ms: int, seconds: int | None) -> int | None:
    return None if seconds is None else since_ms + seconds * 1_000


def _task_submitted(state: Execution, event: Event) -> Execution:
    """The call is over, its answer is not: the time-out counts from the call's beginning."""
    frame = _frame(state, event)
    called = frame.waiting
    assert isinstance(called, Attempt)
    waiting = Awaiting(
        entry=called.entry,
        attempt=called.attempt,
        kind=called.kind,
        arguments=called.arguments,
        since_ms=called.due_ms,
        due_ms=_due_ms(called.due_ms, called.timeout_seconds),
        heartbeat_seconds=called.heartbeat_seconds,
        heartbeat_due_ms=_due_ms(event.at_ms, called.heartbeat_seconds),
        target=called.target,
        submitted=event.details["output"],
        poll_due_ms=_poll_due_ms(called, event),
        credentials=called.credentials,
    )
    return _moved(state, frame, event, waiting=waiting)


def _poll_due_ms(called: Attempt, event: Event) -> int | None:
    if called.kind != "sync" or called.target == NESTED_EXECUTION:
        return None
    return event.at_ms + poll_seconds(0) * 1_000


def _polled(state: Execution, event: Event) -> Execution:
    frame, own = _frame(state, event), event.holdfast
    assert isinstance(frame.waiting, Awaiting)
    waiting = replace(frame.waiting, poll_due_ms=own["due"], polls=own["polls"])
    return _moved(state, frame, event, waiting=waiting)


def _activity_started(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    assert isinstance(frame.waiting, Awaiting)
    waiting = replace(
        frame.waiting,
        is_begun=True,
        heartbeat_due_ms=_due_ms(event.at_ms, frame.waiting.heartbeat_seconds),
    )
    return _moved(state, frame, event, waiting=waiting)


def _counted(frame: Frame, own: Mapping[str, Any]) -> Mapping[int, int]:
    retrier = own.get("retrier")
    if retrier is None:
        return frame.retries
    return {**frame.retries, retrier: frame.retries.get(retrier, 0) + 1}


def _task_started(state: Execution, event: Event) -> Execution:
    return _moved(state, _frame(state, event), event)


def _task_succeeded(state: Execution, event: Event) -> Execution:
    if "event" in event.holdfast:
        # A host whose clock is behind may still find an event valid that is over by this one.
        over_ms = event.at_ms - 2 * CLOCK_ERROR_MS
        unexpired = {key: expiry for key, expiry in state.used_events.items() if expiry > over_ms}
        used = {**unexpired, event.holdfast["event"]: event.holdfast["expires"]}
        state = state._replace(used_events=used)
    return _moved(state, _frame(state, event), event, waiting=Exited())


def _failed(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    waiting = Failed(None, 0)
    if isinstance(frame.waiting, Attempt | Awaiting):
        waiting = Failed(frame.waiting.entry, frame.waiting.attempt)
    return _moved(state, frame, event, waiting=waiting)


def _claimed(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    assert isinstance(frame.waiting, Attempt)
    waiting = replace(
        frame.waiting,
        claim=Claim(*event.holdfast["claim"]),
        takeovers=event.holdfast["takeovers"],
        is_unknown=False,
    )
    return _moved(state, frame, event, waiting=waiting)


def _task_unknown(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    assert isinstance(frame.waiting, Attempt)
    waiting = replace(frame.waiting, claim=None, is_unknown=True)
    return _moved(state, frame, event, waiting=waiting)


def _heartbeat_seen(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    assert isinstance(frame.waiting, Awaiting)
    assert frame.waiting.heartbeat_seconds is not None
    due_ms = event.holdfast["beat"] + frame.waiting.heartbeat_seconds * 1_000
    return _moved(state, frame, event, waiting=replace(frame.waiting, heartbeat_due_ms=due_ms))


# -- timers and lanes ------------------------------------------------------------------------------


def _timer_set(state: Execution, event: Event) -> Execution:
    entry = event.holdfast["entry"]
    state = state._replace(next_entry=max(state.next_entry, entry + 1))
    waiting = Timer(entry, event.holdfast["due"])
    return _moved(state, _frame(state, event), event, waiting=waiting)


def _retry_delayed(state: Execution, event: Event) -> Execution:
    frame, entry = _frame(state, event), event.holdfast["entry"]
    state = _without_lanes(state, frame)
    state = state._replace(next_entry=max(state.next_entry, entry + 1))
    return _moved(
        state,
        # The next attempt hangs off the event in the lane that failed.
        frame._replace(previous=event.previous),
        event,
        retries=_counted(frame, event.holdfast),
        waiting=Delay(entry, event.holdfast["due"]),
    )


def _lanes_started(state: Execution, event: Event) -> Execution:
    frame, own = _frame(state, event), event.holdfast
    state = state._replace(next_entry=max(state.next_entry, own["entry"] + 1))
    if "concurrency" not in own:  # distributed: the run that follows opens its lanes
        return _moved(state, frame, event, waiting=Exited())
    waiting = Lanes(
        entry=own["entry"],
        count=event.details["length"] if "length" in event.details else own["count"],
        started=0,
        concurrency=own["concurrency"],
        items=own.get("items"),
        branch_input=own.get("input"),
        results={},
    )
    return _moved(state, frame, event, waiting=waiting)


def _iteration_started(state: Execution, event: Event) -> Execution:
    state, frame = _new_frame(state, event)
    return _moved(state, frame, event)


def _iteration_succeeded(state: Execution, event: Event) -> Execution:
    return _lane_ended(state, _frame(state, event), event)


def _lanes_succeeded(state: Execution, event: Event) -> Execution:
    return _moved(state, _frame(state, event), event, waiting=Exited())


def _lanes_failed(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    return _moved(state, frame, event, waiting=Failed(None, 0, _lanes_of(frame)))


# -- the execution ---------------------------------------------------------------------------------


def _stopping(state: Execution, event: Event) -> Execution:
    own = event.holdfast
    return state._replace(stopping=own["texts"], last_control=own["control"])


def _undo_started(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    variables = {**frame.variables, **event.holdfast["assigned"]}
    return _moved(state, frame, event, variables=variables, waiting=Exited())


def _unwound(state: Execution, event: Event) -> Execution:
    frame = _frame(state, event)
    return state._replace(frames={k: v for k, v in state.frames.items() if k != frame.id})


def _opened(state: Execution, event: Event) -> Execution:
    return state._replace(opened_at=event.holdfast["sequence"], opened_ms=event.at_ms)


# -- distributed Maps ------------------------------------------------------------------------------


def _map_run_event(state: Execution, event: Event) -> Execution:
    return _moved(state, _frame(state, event), event)


def _map_run_failed(state: Execution, event: Event) -> Execution:
    return _moved(state, _frame(state, event), event, waiting=Failed(None, 0))


def _asked(kind: TaskKind) -> _Apply:
    def apply_asked(state: Execution, event: Event) -> Execution:
        """Items are read, or results written, by an attempt as any other."""
        own = event.holdfast
        waiting = Attempt(
            entry=own["entry"],
            attempt=own["attempt"],
            kind=kind,
            target=own["target"],
            arguments=own["arguments"],
            timeout_seconds=None,
            due_ms=event.at_ms,
            claim=Claim(*own["claim"]) if "claim" in own else None,
        )
        return _moved(state, _frame(state, event), event, waiting=waiting)

    return apply_asked


def _children_started(state: Execution, event: Event) -> Execution:
    own = event.holdfast
    waiting = Children(
        entry=own["entry"],
        map_run_arn=own["arn"],
        inputs=own["inputs"],
        items=own["items"],
        concurrency=own["concurrency"],
        failures_max=own["failures_max"],
        started=min(own["concurrency"], len(own["inputs"])),
        results={},
    )
    return _moved(state, _frame(state, event), event, waiting=waiting)


def _child_ended(state: Execution, event: Event) -> Execution:
    frame, own = _frame(state, event), event.holdfast
    children = frame.waiting
    assert isinstance(children, Children)
    waiting = replace(
        children,
        started=min(children.started + 1, len(children.inputs)),
        results={**children.results, own["lane"]: own["result"]},
    )
    return _moved(state, frame, event, waiting=waiting)


def _noted(state: Execution, _event: Event) -> Execution:
    """It stands in the history, and changes nothing: what it is about goes with its owner."""
    return state


_HANDLERS: Final[Mapping[str, _Apply]] = {
    **{
        f"{task}{name}": handler
        for task in ("Task", "LambdaFunction", "Activity")
        for name, handler in {
            "Scheduled": _task_scheduled,
            "Started": _task_started,
            "Succeeded": _task_succeeded,
            "Failed": _failed,
            "TimedOut": _failed,
        }.items()
    },
    "TaskSubmitted": _task_submitted,
    "Polled": _polled,
    "MapRunStarted": _map_run_event,
    "MapRunSucceeded": _map_run_event,
    "MapRunFailed": _map_run_failed,
    "ItemsAsked": _asked("read"),
    "ChildrenStarted": _children_started,
    "ChildEnded": _child_ended,
    "ResultsAsked": _asked("write"),
    "ActivityStarted": _activity_started,
    "TaskStateAborted": _noted,
    "WaitStateAborted": _noted,
    "ParallelStateAborted": _noted,
    "MapStateAborted": _noted,
    "MapIterationAborted": _noted,
    "EvaluationFailed": _failed,
    "ParallelStateStarted": _lanes_started,
    "ParallelStateSucceeded": _lanes_succeeded,
    "ParallelStateFailed": _lanes_failed,
    "MapStateStarted": _lanes_started,
    "MapStateSucceeded": _lanes_succeeded,
    "MapStateFailed": _lanes_failed,
    "MapIterationStarted": _iteration_started,
    "MapIterationSucceeded": _iteration_succeeded,
    "MapIterationFailed": _noted,
    "ExecutionRedriven": _redriven,
    "Stopping": _stopping,
    "UndoStarted": _undo_started,
    "Unwound": _unwound,
    "Opened": _opened,
    "Claimed": _claimed,
    "TimerSet": _timer_set,
    "RetryDelayed": _retry_delayed,
    "TaskUnknown": _task_unknown,
    "HeartbeatSeen": _heartbeat_seen,
}
