"""The branches of a Parallel and the iterations of an inline Map: started, ended, joined. This code
calls both of them lanes.

The state that starts lanes is their owner. It waits as `Lanes`, which counts them. Each lane has a
frame of its own, with the id `<entry>.<number>`. When a lane ends, its result is stored with the
owner and its frame is removed:

    start ──► as many lanes as may run ──► a lane ends ──► enough have succeeded ──► join
                       ▲                        │
                       └──── the next one ◄─────┴──► it failed: tolerated, or the owner fails
                                                     (where errors are results: or join)

A lane is counted once in `started` and once in `results`. So the join happens once, whatever the
order in which the lanes end.
"""

from __future__ import annotations

from typing import Any, Final, assert_never

from holdfast.asl import error_names
from holdfast.asl.program import Json, MapState, ParallelState, Quorum
from holdfast.asl.template import EvaluationError, StateError
from holdfast.core import cancelling, flow
from holdfast.core.decision import Decision, whole_number
from holdfast.core.state import Frame, Lanes
from holdfast.limits import LANES_MAX, MAX_CONCURRENCY_DEFAULT

#: The error when all branches or iterations have ended and fewer of them have succeeded than are
#: needed.
TOO_FEW_SUCCEEDED: Final = "Holdfast.TooFewSucceeded"
#: The result of a lane that did not end, where errors are results.
_CANCELLED: Final = {
    "Error": error_names.BRANCH_CANCELLED,
    "Cause": error_names.BRANCH_CANCELLED_CAUSE,
    error_names.RETURNED_MARK: True,
}


def start(decision: Decision, frame: Frame, state: ParallelState | MapState) -> None:
    """Start the branches of a Parallel, or as many iterations of a Map as may run at once."""
    try:
        match state:
            case ParallelState():
                _start_branches(decision, frame, state)
            case MapState():
                _start_iterations(decision, frame, state)
            case _:
                assert_never(state)
    except StateError as error:
        flow.fail_state(decision, frame, error)


def _start_branches(decision: Decision, frame: Frame, state: ParallelState) -> None:
    data = frame.input
    own: dict[str, Any] = {}
    if state.after:
        own["after"] = state.after
    if state.arguments is not None:
        data = own["input"] = decision.evaluate(state.arguments, frame)
    entry, count = decision.state.next_entry, len(state.branches)
    _require_room(count)
    started = decision.emit(
        "ParallelStateStarted",
        frame=frame.id,
        previous=frame.previous,
        entry=entry,
        count=count,
        concurrency=count,
        **own,
        **_quorum(decision, frame, state.quorum),
    )
    for number, start_at in enumerate(state.branches):
        if not state.after or not state.after[number]:
            flow.enter(decision, f"{entry}.{number}", start_at, data, started)


def _quorum(decision: Decision, frame: Frame, quorum: Quorum | None) -> dict[str, Any]:
    if quorum is None:
        return {}
    own: dict[str, Any] = {}
    if quorum.needed is not None:
        own["needed"] = whole_number(decision.evaluate(quorum.needed, frame), "Needed", least=1)
    if quorum.tolerated is not None:
        own["tolerated"] = whole_number(decision.evaluate(quorum.tolerated, frame), "Tolerated")
    return own


def _require_room(count: int) -> None:
    """Fail a state with too many lanes. The cost of each lane grows with the number of lanes, so
    one such state could occupy a worker for minutes.
    """
    if count > LANES_MAX:
        # A direct run in Python raises the same text. It has no state whose name could come first.
        cause = error_names.too_many_lanes_cause(count, LANES_MAX)
        raise StateError(error_names.TOO_MANY_LANES, cause, is_whole=True)


def _start_iterations(decision: Decision, frame: Frame, state: MapState) -> None:
    items = frame.input if state.items is None else decision.evaluate(state.items, frame)
    if not isinstance(items, list):
        from holdfast.asl.field_errors import not_an_array  # noqa: PLC0415  # for cold starts

        raise EvaluationError("", not_an_array(items))
    _require_room(len(items))
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
        **_quorum(decision, frame, state.quorum),
    )
    owner = decision.frame(frame.id)
    if items:
        _fill(decision, owner, state, started)
    else:
        join(decision, owner)


def _fill(decision: Decision, owner: Frame, state: MapState, previous: int) -> None:
    """Start as many iterations as may run.

    If the ItemSelector of an iteration fails, the Map fails before further iterations begin. If the
    Map tolerates that failure, the next iteration takes the place of the failed one.
    """
    assert isinstance(owner.waiting, Lanes)
    entry, found = owner.waiting.entry, decision.state.frames.get(owner.id)
    while found is not None and _has_room(found, entry):
        _start_iteration(decision, found, state, previous)
        found = decision.state.frames.get(owner.id)


def _has_room(owner: Frame, entry: int) -> bool:
    lanes = owner.waiting
    if not isinstance(lanes, Lanes) or lanes.closing is not None or lanes.entry != entry:
        return False
    running = lanes.started - len(lanes.results)
    return lanes.started < lanes.count and running < lanes.concurrency


def _start_iteration(decision: Decision, owner: Frame, state: MapState, previous: int) -> None:
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
        # AWS evaluates the ItemSelector with the input of the Map itself. The selector reads the
        # item from the context object.
        selecting = frame._replace(
            input=owner.input,
            position=owner.position,
            entered_event=owner.entered_event,
            entered_ms=owner.entered_ms,
        )
        try:
            data = decision.evaluate(state.item_selector, selecting)
        except StateError as error:
            flow.fail_state(decision, selecting, error)
            return
    flow.enter(decision, frame_id, state.processor, data, started)


def is_tolerated(decision: Decision, lane: Frame, owner: Frame, failure: flow.Failure) -> bool:
    """Return True when the owner does not fail because of this failure: record it, and continue
    without the lane or join.
    """
    lanes = owner.waiting
    assert isinstance(lanes, Lanes)
    own: dict[str, Any] = {}
    if _returns_errors(decision, owner):
        own["result"] = {**failure.caught(), error_names.RETURNED_MARK: True}
    elif lanes.failed >= lanes.tolerated:
        return False
    previous = decision.frame(lane.id).previous
    decision.emit("LaneFailed", frame=lane.id, **own)
    owner = decision.frame(owner.id)
    # An iteration without a position failed in its ItemSelector, while `_fill` was starting it.
    # `_fill` continues with the next iteration itself, so do not start it here, too.
    if not _is_joined(decision, owner) and lane.position:
        _start_next(decision, owner, previous)
    return True


def _returns_errors(decision: Decision, owner: Frame) -> bool:
    state = decision.state_of(owner)
    assert isinstance(state, ParallelState | MapState)
    return state.quorum is not None and state.quorum.returns_errors


def ended(decision: Decision, owner: Frame, exited: int) -> None:
    """Handle the end of a lane: join when the lanes are decided, else start the lanes that waited
    for this one.
    """
    if not _is_joined(decision, owner):
        _start_next(decision, owner, exited)


def _is_joined(decision: Decision, owner: Frame) -> bool:
    lanes = owner.waiting
    assert isinstance(lanes, Lanes)
    is_reached = lanes.needed is not None and lanes.succeeded >= lanes.needed
    # Where errors are results, a failure too many also ends the other lanes with a join.
    is_over = lanes.failed > lanes.tolerated and _returns_errors(decision, owner)
    if is_reached or is_over:
        if not cancelling.close(decision, owner, {"then": "join"}):
            flow.abort_lanes(decision, owner, None)
            join(decision, decision.frame(owner.id))
        return True
    if len(lanes.results) == lanes.count:
        join(decision, owner)
        return True
    return False


def _start_next(decision: Decision, owner: Frame, exited: int) -> None:
    lanes, state = owner.waiting, decision.state_of(owner)
    assert isinstance(lanes, Lanes)
    match state:
        case MapState():
            _fill(decision, owner, state, exited)
        case ParallelState() if lanes.after:
            _start_following(decision, lanes, state, exited)


def _start_following(decision: Decision, lanes: Lanes, state: ParallelState, exited: int) -> None:
    """Open the branches whose last predecessor has just ended."""
    for number, earlier in enumerate(lanes.after):
        frame_id = f"{lanes.entry}.{number}"
        has_begun = frame_id in decision.state.frames or number in lanes.results
        if not has_begun and all(other in lanes.results for other in earlier):
            data: Json = [lanes.results[other] for other in earlier]
            flow.enter(decision, frame_id, state.branches[number], data, exited)


def join(decision: Decision, owner: Frame) -> None:
    """Leave the state with the lanes' results in lane order. A lane that failed or was cancelled
    has None; where errors are results, it has its error.
    """
    lanes, state = owner.waiting, decision.state_of(owner)
    assert isinstance(lanes, Lanes)
    assert isinstance(state, ParallelState | MapState)
    returns_errors = _returns_errors(decision, owner)
    if not returns_errors and lanes.needed is not None and lanes.succeeded < lanes.needed:
        cause = f"{lanes.succeeded} of {lanes.needed} needed branches succeeded"
        flow.handle_failure(decision, owner.id, flow.Failure(TOO_FEW_SUCCEEDED, cause))
        return
    missing: Json = _CANCELLED if returns_errors else None
    results: Json = [lanes.results.get(number, missing) for number in range(lanes.count)]
    previous = owner.previous
    decision.emit(f"{type(state).__name__}Succeeded", frame=owner.id, previous=previous)
    flow.leave(
        decision,
        decision.frame(owner.id),
        state.next,
        (state.assign, state.output),
        default=results,
        extra={"result": results},
        # In AWS's histories the exit has the same previous event as the success.
        previous=previous,
    )
