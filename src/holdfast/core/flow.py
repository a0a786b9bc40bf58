"""How control moves: entering and leaving states, scheduling tasks, lanes, failing.

Each function takes the decision in the making and a frame as it stands, and appends events.
The order of events and their predecessors are AWS's, as its recorded histories show them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from holdfast.asl.program import Json, Map, Parallel, Retrier, Task
from holdfast.asl.template import EvaluationError, Template
from holdfast.core.decision import Decision
from holdfast.core.retry import delay_ms, find_catcher, find_retrier
from holdfast.core.state import Failed, Frame, Lanes
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
    except EvaluationError as error:
        fail_evaluation(decision, frame, error, is_caught=is_caught)
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
    except EvaluationError as error:
        fail_evaluation(decision, frame, error)


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
        raise _no_items(state, items)
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


def _no_items(state: Map, found: Json) -> EvaluationError:
    if state.items is not None:
        return EvaluationError("Items", f"Items has to be an array, found {type(found).__name__}.")
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    return EvaluationError("", f"Map state input must be an array but was: {text}")


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
        except EvaluationError as error:
            fail_evaluation(decision, selecting, error)
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
    try:
        details, timeout = _task_details(decision, frame, state)
    except EvaluationError as error:
        fail_evaluation(decision, frame, error)
        return
    own: dict[str, Any] = {"entry": decision.state.next_entry, "attempt": 1}
    if retrier is not None:
        assert isinstance(frame.waiting, Failed)
        own |= {"entry": frame.waiting.entry, "attempt": frame.waiting.attempt + 1}
        own["retrier"] = retrier
    is_due = due_ms is None or due_ms <= decision.moment.now_ms
    if not is_due:
        own["due"] = due_ms
    elif state.kind in {"task", "pure"}:
        claim = decision.moment.claim(timeout)
        if claim is not None:
            own["claim"] = [claim.owner, claim.message, claim.receive_count, claim.until_ms]
    scheduled = decision.emit(
        "TaskScheduled", frame=frame.id, previous=frame.previous, details=details, **own
    )
    if state.kind not in {"task", "pure"}:
        decision.emit("TaskStarted", frame=frame.id, previous=scheduled, details=resource_of(state))


def _task_details(
    decision: Decision, frame: Frame, state: Task
) -> tuple[dict[str, Any], int | None]:
    """-> TaskScheduled's details, and the time-out in seconds."""
    parameters = (
        frame.input if state.arguments is None else decision.evaluate(state.arguments, frame)
    )
    details = {**resource_of(state), "region": "holdfast", "parameters": parameters}
    timeout = _seconds(decision, frame, state.timeout_seconds, "TimeoutSeconds")
    heartbeat = _seconds(decision, frame, state.heartbeat_seconds, "HeartbeatSeconds")
    if timeout is not None:
        details["timeoutInSeconds"] = timeout
    if heartbeat is not None:
        details["heartbeatInSeconds"] = heartbeat
    return details, timeout


def resource_of(state: Task) -> dict[str, Any]:
    resource_type, _, resource = state.resource.partition(":")
    return {"resourceType": resource_type, "resource": resource}


def _seconds(decision: Decision, frame: Frame, template: Template | None, where: str) -> int | None:
    if template is None:
        return None
    return whole_number(decision.evaluate(template, frame), where, least=1)


def whole_number(value: Json, where: str, *, least: int = 0) -> int:
    """-> the value when it is a whole number from `least`, else an evaluation that failed."""
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    if not is_whole or value < least:  # type: ignore[operator]
        raise EvaluationError(where, f"{where} has to be a whole number from {least}.")
    return int(value)  # type: ignore[arg-type]


# -- failing ---------------------------------------------------------------------------------------


def fail_evaluation(
    decision: Decision, frame: Frame, error: EvaluationError, *, is_caught: bool = False
) -> None:
    cause = (
        f"An error occurred while executing the state '{frame.position}' (entered at the "
        f"event id #{frame.entered_event}). {error.cause}"
    )
    details = {
        "error": "States.QueryEvaluationError",
        "cause": cause[:CAUSE_CHARACTERS_MAX],
        # AWS names no field where the state's input itself is at fault.
        **({"location": error.location} if error.location else {}),
        "state": frame.position,
    }
    # AWS hangs what fails right after its entry off the same event as the entry, not off it.
    is_at_entry = frame.previous == frame.entered_event
    previous = frame.entry_previous if is_at_entry else frame.previous
    decision.emit("EvaluationFailed", frame=frame.id, previous=previous, details=details)
    if is_caught or decision.frame(frame.id).position == "":
        # An iteration whose selector failed has entered no state that could handle it.
        pass_on(decision, decision.frame(frame.id), details["error"], details["cause"])
    else:
        handle_failure(decision, frame.id, details["error"], details["cause"])


def handle_failure(
    decision: Decision, frame_id: str, error: str | None, cause: str | None, previous: int = 0
) -> None:
    """The failure is in the log: now the state retries, catches, or passes it on.

    For a Parallel or Map, `previous` is the event in the lane that failed.
    """
    frame = decision.frame(frame_id)
    state = decision.state_of(frame)
    if not isinstance(state, Task | Parallel | Map):
        pass_on(decision, frame, error, cause)
        return
    retried = find_retrier(state.retry, error or "", frame.retries)
    if retried is not None:
        _retry(decision, frame, state, *retried, previous=previous)
        return
    if isinstance(state, Parallel | Map):
        decision.emit(
            f"{type(state).__name__}StateFailed",
            frame=frame.id,
            previous=previous or frame.previous,
        )
        frame = decision.frame(frame_id)
    catcher = find_catcher(state.catch, error or "")
    if catcher is None:
        pass_on(decision, frame, error, cause)
        return
    caught: Json = {"Error": error, "Cause": cause}
    leave(
        decision,
        frame,
        catcher.next,
        (catcher.assign, catcher.output),
        default=caught,
        extra={"errorOutput": caught},
        is_caught=True,
    )


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
            previous=previous or frame.previous,
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
        decision.emit("ExecutionFailed", previous=frame.previous, details=details)
        return
    owner = decision.frame(frame.owner)
    if isinstance(decision.state_of(owner), Map):
        lane: dict[str, Any] = {"index": frame.lane, "name": owner.position}
        decision.emit("MapIterationFailed", frame=frame.id, previous=frame.previous, details=lane)
    handle_failure(decision, owner.id, error, cause, frame.previous)
