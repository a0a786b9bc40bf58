"""`apply(state, event) -> state`: the meaning of every event, and the only way a state changes.

Rules of this file:
* It reads nothing but the state and the event: no program, no clock, no expression.
* `advance` builds its next state with it, too, so the state in hand and the folded history cannot
  differ.
* Tasks, distributed Maps and cancellations have handlers in files of their own, under the same
  rules.
* The frame of an event is the one that its field `holdfast.frame` names (absent: the root). It is
  never found by counting or by the state's name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.core.apply import cancelling, map_run, migrating, pausing, tasks
from holdfast.core.apply.frames import (
    Apply,
    counted,
    frame_of_event,
    moved,
    replaced,
    with_frames,
    without,
    without_lanes,
)
from holdfast.core.events import Event
from holdfast.core.results import Results
from holdfast.core.state import (
    PRIORITY_DEFAULT,
    ROOT,
    Attribute,
    ChildExecutions,
    ChildNumber,
    Delay,
    Entered,
    Execution,
    Exited,
    FailedState,
    Frame,
    Lanes,
    Parent,
    Status,
    Timer,
    WaitingFor,
    lanes_of,
)
from holdfast.errors import HoldfastBug

_TERMINAL: Final[Mapping[str, Status]] = {
    "ExecutionSucceeded": "SUCCEEDED",
    "ExecutionFailed": "FAILED",
    "ExecutionTimedOut": "TIMED_OUT",
    "ExecutionAborted": "ABORTED",
}

#: Creates a frame in half the time of a call of the class. Each transition creates two frames.
_frame: Final = Frame.__new__


def fold(events: Iterable[Event], state: Execution | None = None) -> Execution | None:
    """Return the state after all events, from nothing or from a snapshot's state."""
    for event in events:
        state = apply(state, event)
    return state


def apply(state: Execution | None, event: Event) -> Execution:
    """Return the state after the event. Raises HoldfastBug when the event cannot follow the state:
    the history is damaged or belongs to another execution.
    """
    if state is None:
        if event.type != "ExecutionStarted":
            raise HoldfastBug(f"a history begins with {event.type}, expected ExecutionStarted")
        return _started(event)
    if state.status != "RUNNING" and event.type != "ExecutionRedriven":
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


@functools.cache
def _handler(event_type: str) -> Apply:
    found = _HANDLERS.get(event_type)
    if found is not None:
        return found
    if event_type.endswith("StateEntered"):
        return _entered
    if event_type.endswith("StateExited"):
        return _exited
    raise HoldfastBug("the history holds an event of an unknown type")


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
        parent=own.get("parent"),
        priority=own.get("priority", PRIORITY_DEFAULT),
    )


def _prioritised(state: Execution, event: Event) -> Execution:
    own = event.holdfast
    return state._replace(priority=own["priority"], last_control=own["control"])


def _continued_as_new(state: Execution, event: Event) -> Execution:
    """Begin again from the first state. The ids of used events and the published values stay. The
    event has a time-out of the whole execution only if there was none before.
    """
    own = event.holdfast
    return state._replace(
        due_ms=own.get("due", state.due_ms),
        definition=own["definition"],
        migrated_from="",
        input=own["input"],
        frames={},
        renewed_event=state.last_event,
    )


def _published(state: Execution, event: Event) -> Execution:
    own = event.holdfast
    return state._replace(published={**state.published, own["name"]: own["value"]})


def _attribute_noted(state: Execution, event: Event) -> Execution:
    """Set a search attribute, or remove it when the event has no value."""
    own = event.holdfast
    attributes = {name: one for name, one in state.attributes.items() if name != own["name"]}
    if own["value"] is not None:
        attributes[own["name"]] = Attribute(own["kind"], own["value"])
    notes = state.notes + 1 if state.is_opened else state.notes
    return state._replace(attributes=attributes, notes=notes)


def _skipped(state: Execution, event: Event) -> Execution:
    """Apply a skip: the wait ends without a result of its own. If the wait had started a child
    execution, no wait needs that child now, so a worker sends it a stop.
    """
    state = state._replace(last_control=event.holdfast["control"])
    return moved(state, frame_of_event(state, event), event, waiting=Exited())


def _forked(state: Execution, event: Event) -> Execution:
    """Apply the end of a fork's copied history: every later event is the fork's own."""
    own, root = event.holdfast, state.frames[ROOT]
    data = event.details.get("input", root.input)
    assigned = event.details.get("assignedVariables", {})
    root = root._replace(
        input=data,
        variables={**root.variables, **assigned},
        entered_ms=event.at_ms,
        deadlines=(),
        waiting=Entered(),
    )
    return state._replace(
        input=event.details.get("input", state.input),
        started_ms=event.at_ms,
        due_ms=own.get("due"),
        frames={ROOT: root},
        last_control="",
        parent=None,
        redrives=0,
        children=frozenset(),
        paused=None,
        fork_of=own["of"],
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
        paused=None,
        resting={} if status == "SUCCEEDED" else state.frames,
    )


def _redriven(state: Execution, event: Event) -> Execution:
    """Continue the execution where it stopped: every state that was open is entered again, with its
    input.

    In a Parallel or Map, branches and iterations that had ended are not run again (AWS docs,
    RedriveExecution). An iteration that had not entered any state begins from its start.
    """
    frames: dict[str, Frame] = {}
    opened: list[ChildNumber] = []
    unbegun = {frame.owner for frame in state.resting.values() if not frame.position}
    for frame in state.resting.values():
        if frame.owner is not None and not _has_lanes(frames.get(frame.owner)):
            continue
        lanes = None if frame.id in unbegun else _lanes_of(frame)
        waiting: WaitingFor = Entered() if lanes is None else lanes
        if frame.id in event.holdfast.get("map_runs", ()):
            waiting, lanes_opened = _redriven_children(frame, event.at_ms)
            opened += ((waiting.entry, lane) for lane in lanes_opened)
        frames[frame.id] = frame._replace(
            previous=event.id, retries={}, waiting=waiting, deadlines=(), cancelled=None
        )
    return state._replace(
        status="RUNNING",
        stopped_ms=None,
        error=None,
        cause=None,
        frames=frames,
        resting={},
        stopping=None,
        redrives=state.redrives + 1,
        parent=_parent_of_round(state.parent, event),
        children=state.children.union(opened),
        last_control=event.holdfast["control"],
        # The execution lost its watchdog row and its list entry at its end. The value None makes a
        # worker write both again.
        opened_at=None,
        due_ms=event.holdfast.get("due"),
    )


def _redriven_children(frame: Frame, at_ms: int) -> tuple[ChildExecutions, list[int]]:
    children = map_run.children_to_resume(frame.waiting)
    assert children is not None, "the redrive names frames with children"
    return map_run.with_room_used(map_run.redriven(children, at_ms))


def _parent_of_round(parent: Parent | None, event: Event) -> Parent | None:
    """Return the parent, with the redrive of the map run that has redriven this child."""
    if parent is None or "round" not in event.holdfast:
        return parent
    return {**parent, "round": event.holdfast["round"]}


def _lanes_of(frame: Frame) -> Lanes | None:
    """Return the lanes (branches or iterations) that may continue. None when all must begin again:
    because they were cancelled and had nothing to undo, or because all have ended and too few have
    succeeded.
    """
    lanes = lanes_of(frame)
    if lanes is None or lanes.closing is not None or len(lanes.results) == lanes.count:
        return None
    return lanes


def _has_lanes(owner: Frame | None) -> bool:
    return owner is not None and isinstance(owner.waiting, Lanes)


# -- frames ----------------------------------------------------------------------------------------


def _entered(state: Execution, event: Event) -> Execution:
    frame = state.frames.get(event.holdfast.get("frame", ROOT))
    if frame is None:
        state, frame = _new_frame(state, event)
    entered = _frame(
        Frame,
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
        deadlines=frame.deadlines,
        cancelled=frame.cancelled,
    )
    if "over" in event.holdfast:
        entered = cancelling.without_deadlines(entered, event.holdfast["over"])
    return replaced(state, entered, event)


def _new_frame(state: Execution, event: Event) -> tuple[Execution, Frame]:
    """Add the root frame, or the frame of a lane (a branch of a Parallel or an iteration of a Map).
    The id of a lane's frame names the entry of the state that owns it, which counts the lane as
    started.
    """
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
    frame = frame_of_event(state, event)
    if isinstance(frame.waiting, FailedState) and frame.waiting.lanes is not None:
        # The error was caught, so the branches or iterations of the failed state do not continue.
        state = without_lanes(state, frame)
    assigned = event.details.get("assignedVariables")
    variables = {**frame.variables, **assigned} if assigned else frame.variables
    frame = _frame(
        Frame,
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
        deadlines=frame.deadlines,
        cancelled=frame.cancelled,
    )
    state = replaced(state, frame, event)
    return _lane_ended(state, frame, event) if event.holdfast.get("end") else state


def _lane_ended(state: Execution, frame: Frame, event: Event) -> Execution:
    assert frame.owner is not None
    owner = state.frames[frame.owner]
    assert isinstance(owner.waiting, Lanes)
    results = owner.waiting.results.with_result(frame.lane, frame.input)
    frames = dict(state.frames)
    del frames[frame.id]
    # In AWS's histories the owner's next event follows the last event of the lane that ended last.
    frames[owner.id] = owner._replace(
        previous=event.id, waiting=owner.waiting._replace(results=results)
    )
    return with_frames(state, frames, event.id)


# -- timers and lanes ------------------------------------------------------------------------------


def _timer_set(state: Execution, event: Event) -> Execution:
    entry = event.holdfast["entry"]
    state = state._replace(next_entry=max(state.next_entry, entry + 1))
    waiting = Timer(entry, event.holdfast["due"])
    return moved(state, frame_of_event(state, event), event, waiting=waiting)


def _retry_delayed(state: Execution, event: Event) -> Execution:
    frame, entry = frame_of_event(state, event), event.holdfast["entry"]
    in_lanes = (lane.error for lane in state.frames.values() if lane.owner == frame.id)
    error = next(filter(None, in_lanes), frame.error)
    state = without_lanes(state, frame)
    state = state._replace(next_entry=max(state.next_entry, entry + 1))
    return moved(
        state,
        # In AWS's histories the next attempt follows the event of the lane's failure.
        frame._replace(previous=event.previous),
        event,
        retries=counted(frame, event.holdfast),
        waiting=Delay(entry, event.holdfast["due"]),
        error=error,
    )


def _lanes_started(state: Execution, event: Event) -> Execution:
    frame, own = frame_of_event(state, event), event.holdfast
    state = state._replace(next_entry=max(state.next_entry, own["entry"] + 1))
    # The event of a distributed Map has no concurrency. Its frame waits for child executions, which
    # a later event (MapRunStarted) adds.
    if "concurrency" not in own:
        return moved(state, frame, event, waiting=Exited())
    waiting = Lanes(
        entry=own["entry"],
        count=event.details["length"] if "length" in event.details else own["count"],
        started=0,
        concurrency=own["concurrency"],
        items=own.get("items"),
        branch_input=own.get("input"),
        results=Results(),
        needed=own.get("needed"),
        tolerated=own.get("tolerated", 0),
        after=tuple(map(tuple, own.get("after", ()))),
    )
    return moved(state, frame, event, waiting=waiting)


def _lane_failed(state: Execution, event: Event) -> Execution:
    """Record the failure of a lane that its owner tolerates. The event has a result where the
    errors of lanes are results.
    """
    frame = frame_of_event(state, event)
    assert frame.owner is not None
    owner = state.frames[frame.owner]
    assert isinstance(owner.waiting, Lanes)
    lanes = owner.waiting._replace(
        results=owner.waiting.results.with_result(frame.lane, event.holdfast.get("result")),
        failed=owner.waiting.failed + 1,
    )
    state = without(state, {frame.id})
    return state.with_frame(owner._replace(previous=frame.previous, waiting=lanes))


def _iteration_started(state: Execution, event: Event) -> Execution:
    state, frame = _new_frame(state, event)
    return moved(state, frame, event)


def _iteration_succeeded(state: Execution, event: Event) -> Execution:
    return _lane_ended(state, frame_of_event(state, event), event)


def _lanes_succeeded(state: Execution, event: Event) -> Execution:
    """Join the lanes that have succeeded. Lanes that the join did not need are dropped."""
    frame = frame_of_event(state, event)
    return moved(without_lanes(state, frame), frame, event, waiting=Exited())


def _lanes_failed(state: Execution, event: Event) -> Execution:
    frame = frame_of_event(state, event)
    children = map_run.children_to_resume(frame.waiting)
    waiting = FailedState(None, 0, lanes_of(frame), children)
    return moved(state, frame, event, waiting=waiting, error=event.details.get("error"))


# -- the execution ---------------------------------------------------------------------------------


def _opened(state: Execution, event: Event) -> Execution:
    return state._replace(opened_at=event.holdfast["sequence"], opened_ms=event.at_ms)


def _noted(state: Execution, _event: Event) -> Execution:
    """Leave the state unchanged. Such an event only completes the history: the branch or task that
    it names ends together with its owner.
    """
    return state


_HANDLERS: Final[Mapping[str, Apply]] = {
    **tasks.HANDLERS,
    **map_run.HANDLERS,
    **cancelling.HANDLERS,
    **pausing.HANDLERS,
    "PriorityChanged": _prioritised,
    "ContinuedAsNew": _continued_as_new,
    "Published": _published,
    "Noted": _attribute_noted,
    "StepSkipped": _skipped,
    "Migrated": migrating.migrated,
    "ExecutionForked": _forked,
    "TaskStateAborted": _noted,
    "WaitStateAborted": _noted,
    "ParallelStateAborted": _noted,
    "MapStateAborted": _noted,
    "MapRunAborted": _noted,
    "MapIterationAborted": _noted,
    "EvaluationFailed": tasks.failed,
    "ActivityScheduleFailed": tasks.failed,
    "TaskSubmitFailed": tasks.failed,
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
    "LaneFailed": _lane_failed,
    "Opened": _opened,
    "TimerSet": _timer_set,
    "RetryDelayed": _retry_delayed,
}
