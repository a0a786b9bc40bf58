"""How control moves: entering and leaving states, scheduling tasks, lanes, failing.

Each function takes the decision in the making and a frame as it stands, and appends events.
The order of events and their predecessors are AWS's, as its recorded histories show them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from holdfast.asl.program import Json, Map, Parallel, Retrier, Task, Wait
from holdfast.asl.template import EvaluationError, StateError, Template
from holdfast.core.decision import Decision
from holdfast.core.retry import RUNTIME, TIMEOUT, delay_ms, find_catcher, find_retrier
from holdfast.core.state import ANSWERED_LATER, ATTEMPTED, Failed, Frame, Lanes
from holdfast.core.tasks import (
    event_type,
    note_started,
    oversize,
    resource_of,
    scheduled_details,
    whole_number,
)
from holdfast.limits import CAUSE_CHARACTERS_MAX, MAX_CONCURRENCY_DEFAULT

#: A state's Assign and Output.
Results: TypeAlias = tuple[Template | None, Template | None]


# -- entering and leaving --------------------------------------------------------------------------


def enter(decision: Decision, frame_id: str, name: str, data: Json, previous: int) -> None:
    kind = type(decision.program.states[name]).__name__
    decision.emit(
        f"{kind}StateEntered",
        frame=frame_id,
        previous=previous,
        details={"name": name, "input": data},
    )
    decision.entered.append(frame_id)


def leave(
    decision: Decision,
    frame: Frame,
    target: str | None,
    results: Results,
    *,
    default: Json,
    extra: Mapping[str, Json] | None = None,
    previous: int | None = None,
    is_caught: bool = False,
) -> None:
    """Evaluates Assign and Output, exits the state, and goes on to `target` (None: the end).

    `default` is the state's output when it has no Output; `extra` adds to `$states`. A catcher
    whose own Output fails (`is_caught`) is not asked again: it would fail for ever.
    """
    assign, output = results
    try:
        assigned = None if assign is None else decision.evaluate(assign, frame, extra)
        data = default if output is None else decision.evaluate(output, frame, extra)
        too_large = None if data is frame.input else oversize(decision, frame.position, data)
        if too_large is not None:
            raise too_large
    except StateError as error:
        fail_state(decision, frame, error, is_caught=is_caught)
        return
    details: dict[str, Any] = {"name": frame.position, "output": data}
    if assigned:
        details["assignedVariables"] = assigned
    ends_branch = target is None and _is_branch(decision, frame)
    exited = decision.emit(
        f"{type(decision.state_of(frame)).__name__}StateExited",
        frame=frame.id,
        previous=frame.previous if previous is None else previous,
        details=details,
        **({"end": True} if ends_branch else {}),
    )
    if target is not None:
        enter(decision, frame.id, target, data, exited)
    else:
        _end(decision, frame, data, exited)


def _is_branch(decision: Decision, frame: Frame) -> bool:
    return frame.owner is not None and isinstance(
        decision.state_of(decision.frame(frame.owner)), Parallel
    )


def _end(decision: Decision, frame: Frame, data: Json, exited: int) -> None:
    if frame.owner is None:
        decision.emit("ExecutionSucceeded", previous=exited, details={"output": data})
        return
    owner = decision.frame(frame.owner)
    if isinstance(decision.state_of(owner), Map):
        details = {"index": frame.lane, "name": owner.position}
        decision.emit("MapIterationSucceeded", frame=frame.id, previous=exited, details=details)
    _lane_ended(decision, decision.frame(owner.id), exited)


# -- lanes -----------------------------------------------------------------------------------------


def start_lanes(decision: Decision, frame: Frame, state: Parallel | Map) -> None:
    """Opens the branches of a Parallel, or as many iterations of a Map as may run at once."""
    try:
        match state:
            case Parallel():
                _start_branches(decision, frame, state)
            case Map():
                _start_iterations(decision, frame, state)
    except StateError as error:
        fail_state(decision, frame, error)


def _start_branches(decision: Decision, frame: Frame, state: Parallel) -> None:
    data = frame.input
    own: dict[str, Any] = {}
    if state.arguments is not None:
        data = own["input"] = decision.evaluate(state.arguments, frame)
    entry, count = decision.state.next_entry, len(state.branches)
    started = decision.emit(
        "ParallelStateStarted",
        frame=frame.id,
        previous=frame.previous,
        entry=entry,
        count=count,
        concurrency=count,
        **own,
    )
    for number, start_at in enumerate(state.branches):
        enter(decision, f"{entry}.{number}", start_at, data, started)


def _start_iterations(decision: Decision, frame: Frame, state: Map) -> None:
    items = frame.input if state.items is None else decision.evaluate(state.items, frame)
    if not isinstance(items, list):
        text = json.dumps(items, separators=(",", ":"), ensure_ascii=False)
        raise EvaluationError("", f"Map state input must be an array but was: {text}")
    concurrency = 0
    if state.concurrency_max is not None:
        concurrency = whole_number(
            decision.evaluate(state.concurrency_max, frame), "MaxConcurrency"
        )
    started = decision.emit(
        "MapStateStarted",
        frame=frame.id,
        previous=frame.previous,
        details={"length": len(items)},
        entry=decision.state.next_entry,
        items=items,
        concurrency=min(concurrency or MAX_CONCURRENCY_DEFAULT, MAX_CONCURRENCY_DEFAULT),
    )
    lanes = decision.frame(frame.id).waiting
    assert isinstance(lanes, Lanes)
    if not items:
        _join(decision, decision.frame(frame.id), state, lanes)
    for _ in range(min(lanes.count, lanes.concurrency)):
        owner = decision.state.frames.get(frame.id)
        # An iteration whose selector fails ends the Map before the others begin.
        if owner is None or not is_same_entry(owner, lanes.entry):
            return
        _start_iteration(decision, owner, state, started)


def is_same_entry(frame: Frame, entry: int) -> bool:
    return getattr(frame.waiting, "entry", None) == entry


def _start_iteration(decision: Decision, owner: Frame, state: Map, previous: int) -> None:
    lanes = owner.waiting
    assert isinstance(lanes, Lanes)
    assert isinstance(lanes.items, list)
    index = lanes.started
    frame_id = f"{lanes.entry}.{index}"
    details = {"index": index, "name": owner.position}
    started = decision.emit(
        "MapIterationStarted", frame=frame_id, previous=previous, details=details
    )
    data = lanes.items[index]
    frame = decision.frame(frame_id)
    if state.item_selector is not None:
        # The selector sees the Map's own input and position, and the item through the context.
        selecting = frame._replace(
            input=owner.input,
            position=owner.position,
            entered_event=owner.entered_event,
            entered_ms=owner.entered_ms,
        )
        try:
            data = decision.evaluate(state.item_selector, selecting)
        except StateError as error:
            fail_state(decision, selecting, error)
            return
    enter(decision, frame_id, state.processor, data, started)


def _lane_ended(decision: Decision, owner: Frame, exited: int) -> None:
    """Starts the next iteration, or joins when every lane is in."""
    lanes, state = owner.waiting, decision.state_of(owner)
    assert isinstance(lanes, Lanes)
    assert isinstance(state, Parallel | Map)
    if isinstance(state, Map) and lanes.started < lanes.count:
        _start_iteration(decision, owner, state, exited)
    elif len(lanes.results) == lanes.count:
        _join(decision, owner, state, lanes)


def _join(decision: Decision, owner: Frame, state: Parallel | Map, lanes: Lanes) -> None:
    results: Json = [lanes.results[number] for number in range(lanes.count)]
    previous = owner.previous
    decision.emit(f"{type(state).__name__}StateSucceeded", frame=owner.id, previous=previous)
    leave(
        decision,
        decision.frame(owner.id),
        state.next,
        (state.assign, state.output),
        default=results,
        extra={"result": results},
        previous=previous,  # AWS: the exit hangs off the same event as the success, not off it
    )


# -- tasks -----------------------------------------------------------------------------------------


def schedule(
    decision: Decision,
    frame: Frame,
    state: Task,
    *,
    due_ms: int | None = None,
    retrier: int | None = None,
) -> None:
    """`due_ms` in the future: the attempt may not begin before, and nobody claims it yet."""
    own: dict[str, Any] = {"entry": decision.state.next_entry, "attempt": 1}
    if retrier is not None:
        assert isinstance(frame.waiting, Failed)
        own |= {"entry": frame.waiting.entry, "attempt": frame.waiting.attempt + 1}
        own["retrier"] = retrier
    token = None
    if state.kind in ANSWERED_LATER:
        token = decision.moment.token(own["entry"], own["attempt"])
    try:
        details = scheduled_details(decision, frame, state, token)
    except StateError as error:
        fail_state(decision, frame, error)
        return
    is_due = due_ms is None or due_ms <= decision.moment.now_ms
    if not is_due:
        own["due"] = due_ms
    elif state.kind in ATTEMPTED:
        claim = decision.moment.claim(details.get("timeoutInSeconds"))
        if claim is not None:
            own["claim"] = [claim.owner, claim.message, claim.receive_count, claim.until_ms]
    scheduled = decision.emit(
        event_type(state, "Scheduled"),
        frame=frame.id,
        previous=frame.previous,
        details=details,
        **own,
    )
    # What a worker does has its start written with its end; an activity starts when it is polled.
    if state.kind not in ATTEMPTED and state.kind != "activity":
        decision.emit("TaskStarted", frame=frame.id, previous=scheduled, details=resource_of(state))


# -- failing ---------------------------------------------------------------------------------------


def fail_state(
    decision: Decision, frame: Frame, error: StateError, *, is_caught: bool = False
) -> None:
    """A field of the state could not be worked out. Only a JSONata field has an event for it."""
    cause = error.cause
    if not error.is_whole:
        cause = (
            f"An error occurred while executing the state '{frame.position}' (entered at the "
            f"event id #{frame.entered_event}). {cause}"
        )
    cause = cause[:CAUSE_CHARACTERS_MAX]
    if isinstance(error, EvaluationError):
        details = {
            "error": error.error,
            "cause": cause,
            # AWS names no field where the state's input itself is at fault.
            **({"location": error.location} if error.location else {}),
            "state": frame.position,
        }
        # AWS hangs what fails right after its entry off the same event as the entry, not off it.
        is_at_entry = frame.previous == frame.entered_event and not error.is_late
        previous = frame.entry_previous if is_at_entry else frame.previous
        decision.emit("EvaluationFailed", frame=frame.id, previous=previous, details=details)
    has_entered = decision.frame(frame.id).position != ""
    if is_caught or not has_entered or error.error == RUNTIME:
        # An iteration whose selector failed has entered no state that could handle it, and nobody
        # handles a runtime error: AWS writes no failure of the state either.
        pass_on(decision, decision.frame(frame.id), error.error, cause)
    else:
        handle_failure(decision, frame.id, error.error, cause)


def handle_failure(
    decision: Decision,
    frame_id: str,
    error: str | None,
    cause: str | None,
    failed: Frame | None = None,
    *,
    handled_as: str | None = None,
) -> None:
    """The failure is in the log: now the state retries, catches, or passes it on.

    `failed` is the lane of a Parallel or Map in which it happened. `handled_as` is the name that
    retriers and catchers are asked for, where it is not the one that is told.
    """
    frame = decision.frame(frame_id)
    state = decision.state_of(frame)
    if not isinstance(state, Task | Parallel | Map):
        pass_on(decision, frame, error, cause)
        return
    if isinstance(state, Parallel | Map):
        _abort_lanes(decision, frame, failed)
    previous = frame.previous if failed is None else failed.previous
    name = handled_as or error or ""
    retried = find_retrier(state.retry, name, frame.retries)
    if retried is not None:
        _retry(decision, frame, state, *retried, previous=previous)
        return
    if isinstance(state, Parallel | Map):
        decision.emit(f"{type(state).__name__}StateFailed", frame=frame.id, previous=previous)
        frame = decision.frame(frame_id)
    catcher = find_catcher(state.catch, name)
    if catcher is None:
        pass_on(decision, frame, error, cause)
        return
    # AWS: a time-out has no cause, and an empty text where it is caught.
    caught: Json = {"Error": error, "Cause": "" if error == TIMEOUT and cause is None else cause}
    leave(
        decision,
        frame,
        catcher.next,
        (catcher.assign, catcher.output),
        default=caught,
        extra={"errorOutput": caught},
        is_caught=True,
    )


def _abort_lanes(decision: Decision, owner: Frame, failed: Frame | None) -> None:
    """What ends with its Parallel or Map says so: "…StateAborted" for each state that is open.

    Seen in recordings. The iteration that `failed` has an event of its own, a branch has none.
    """
    is_map = isinstance(decision.state_of(owner), Map)
    for lane in [lane for lane in decision.state.frames.values() if lane.owner == owner.id]:
        has_failed = failed is not None and lane.id == failed.id
        if lane.position and not (is_map and has_failed):
            _abort_state(decision, lane)
        if is_map and not has_failed:
            details = {"index": lane.lane, "name": owner.position}
            decision.emit(
                "MapIterationAborted", frame=lane.id, previous=lane.previous, details=details
            )


def _abort_state(decision: Decision, lane: Frame) -> None:
    state = decision.state_of(lane)
    if isinstance(lane.waiting, Lanes):  # else they have been aborted with it
        _abort_lanes(decision, lane, None)
    if isinstance(state, Task | Wait | Parallel | Map):
        note_started(decision, lane)
        name = f"{type(state).__name__}StateAborted"
        decision.emit(name, frame=lane.id, previous=decision.frame(lane.id).previous)


def _retry(
    decision: Decision,
    frame: Frame,
    state: Task | Parallel | Map,
    number: int,
    retrier: Retrier,
    *,
    previous: int,
) -> None:
    delay = delay_ms(retrier, frame.retries.get(number, 0), decision.moment.draw())
    due_ms = decision.moment.now_ms + delay
    if isinstance(state, Task) and _has_attempt(frame):
        # Its arguments see the retry that they are for in State.RetryCount.
        counted = {**frame.retries, number: frame.retries.get(number, 0) + 1}
        schedule(decision, frame._replace(retries=counted), state, due_ms=due_ms, retrier=number)
    else:
        # Also a task whose own expressions failed: they are evaluated again, and counted.
        decision.emit(
            "RetryDelayed",
            frame=frame.id,
            previous=previous,
            entry=decision.state.next_entry,
            due=due_ms,
            retrier=number,
        )


def _has_attempt(frame: Frame) -> bool:
    return isinstance(frame.waiting, Failed) and frame.waiting.entry is not None


def pass_on(decision: Decision, frame: Frame, error: str | None, cause: str | None) -> None:
    """Nobody here handles it: the lane fails its owner, the root fails the execution."""
    if frame.owner is None:
        texts = {"error": error, "cause": cause}
        details = {key: text for key, text in texts.items() if text is not None}
        stopping = decision.state.stopping
        if stopping is None:
            decision.emit("ExecutionFailed", previous=frame.previous, details=details)
        else:
            decision.emit("ExecutionAborted", details=dict(stopping))
        return
    owner = decision.frame(frame.owner)
    if isinstance(decision.state_of(owner), Map):
        lane: dict[str, Any] = {"index": frame.lane, "name": owner.position}
        decision.emit("MapIterationFailed", frame=frame.id, previous=frame.previous, details=lane)
    handle_failure(decision, owner.id, error, cause, frame)
