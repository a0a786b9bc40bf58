"""The flow of control: entering and leaving states, scheduling tasks, failing.

Each function takes the decision and a frame, and appends events. The order of events and their
predecessors are those of AWS's recorded histories.

    enter ──► (settle: steps.run) ──► schedule ──► a result ──► leave ──► enter
                                          │                        └────► the end of the lane
                                          └──► a failure ──► retry, catcher, or the owner's failure

`flow`, `lanes` and `cancelling` call each other. A lane is a branch of a Parallel or an iteration
of a Map; its owner is that Parallel or Map. A failure may end a lane, the end of a lane may cancel
the other lanes, and the last of them lets the owner continue. So any call may change other frames:
a function must read a frame again after it has called one of these modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from holdfast.asl import error_names
from holdfast.asl.program import Json, MapState, ParallelState, Retrier, TaskState, WaitState
from holdfast.asl.resources import CHOSEN_POOL, POOL, is_pool_name
from holdfast.asl.template import EvaluationError, StateError, Template
from holdfast.core import cancelling, lanes
from holdfast.core.decision import (
    Decision,
    event_type,
    note_started,
    oversize,
    resource_of,
    whole_seconds,
)
from holdfast.core.events import TASK_EVENTS
from holdfast.core.retry import delay_ms, find_catcher, find_retrier
from holdfast.core.state import (
    ANSWERED_LATER,
    ATTEMPTED,
    Attempt,
    ChildExecutions,
    Closing,
    FailedState,
    Frame,
    Lanes,
    WaitingFor,
)
from holdfast.limits import CAUSE_CHARACTERS_MAX

OWN_REGION: Final = "holdfast"
#: The Assign and Output templates of a state. None stands for a template that the state does not
#: have.
StateTemplates: TypeAlias = tuple[Template | None, Template | None]


class Failure(NamedTuple):
    """The failure of a state or lane. `handled_as` is the error name that Retry and Catch compare,
    where it differs from `error`.
    """

    error: str | None
    cause: str | None
    handled_as: str | None = None

    def details(self) -> dict[str, str]:
        """Return the fields of an AWS event. It has no field for a text that is not there."""
        texts = {"error": self.error, "cause": self.cause}
        return {name: text for name, text in texts.items() if text is not None}

    def caught(self) -> dict[str, Json]:
        """Return the object that a Catch receives. On AWS a time-out has no cause, but a Catch
        receives an empty text as its cause.
        """
        is_empty = self.error == error_names.TIMEOUT and self.cause is None
        return {"Error": self.error, "Cause": "" if is_empty else self.cause}


# -- entering and leaving --------------------------------------------------------------------------


def enter(decision: Decision, frame_id: str, name: str, data: Json, previous: int) -> None:
    kind = type(decision.program.states[name]).__name__
    own: dict[str, Any] = {}
    if decision.program.deadlines:
        if cancelling.is_late(decision, frame_id, name):
            return
        own = _deadlines_over(decision, frame_id, name)
    decision.emit(
        f"{kind}Entered",
        frame=frame_id,
        previous=previous,
        details={"name": name, "input": data},
        **own,
    )
    decision.entered.append(frame_id)


def _deadlines_over(decision: Decision, frame_id: str, name: str) -> dict[str, Any]:
    """Return the field `over`: the deadlines of the blocks that the frame leaves by entering
    `name`.
    """
    frame = decision.state.frames.get(frame_id)
    over = [] if frame is None else cancelling.blocks_left(decision, frame, name)
    return {"over": over} if over else {}


def leave(
    decision: Decision,
    frame: Frame,
    target: str | None,
    results: StateTemplates,
    *,
    default: Json,
    extra: Mapping[str, Json] | None = None,
    previous: int | None = None,
    is_caught: bool = False,
) -> None:
    """Evaluate Assign and Output, exit the state, and continue at `target` (None: the end).

    `default` is the state's output when it has no Output; `extra` adds to `$states`. `is_caught`: a
    catcher continues the state. If the catcher's own Output fails, the same catcher is not used
    again, because it would fail without end.
    """
    try:
        assigned, data = _evaluated(decision, frame, results, default, extra)
    except StateError as error:
        fail_state(decision, frame, error, is_caught=is_caught)
        return
    details: dict[str, Any] = {"name": frame.position, "output": data}
    if assigned:
        details["assignedVariables"] = assigned
    has_ended = target is None and cancelling.outlasting(decision, frame) is None
    ends_branch = has_ended and _is_branch(decision, frame)
    exited = decision.emit(
        f"{type(decision.state_of(frame)).__name__}Exited",
        frame=frame.id,
        previous=frame.previous if previous is None else previous,
        details=details,
        **({"end": True} if ends_branch else {}),
    )
    if target is not None:
        enter(decision, frame.id, target, data, exited)
    else:
        _end(decision, frame, data, exited)


def _evaluated(
    decision: Decision,
    frame: Frame,
    results: StateTemplates,
    default: Json,
    extra: Mapping[str, Json] | None,
) -> tuple[Json, Json]:
    """Return the values of Assign and Output. Raises StateError."""
    assign, output = results
    assigned = None if assign is None else decision.evaluate(assign, frame, extra)
    data = default if output is None else decision.evaluate(output, frame, extra)
    too_large = None if data is frame.input else oversize(decision, frame.position, data)
    if too_large is None and assigned:
        # The variables of one Assign have the quota together (AWS docs, "Passing data between
        # states with variables").
        too_large = oversize(decision, frame.position, assigned)
    if too_large is not None:
        raise too_large
    return assigned, data


def _is_branch(decision: Decision, frame: Frame) -> bool:
    return frame.owner is not None and isinstance(
        decision.state_of(decision.frame(frame.owner)), ParallelState
    )


def _end(decision: Decision, frame: Frame, data: Json, exited: int) -> None:
    if cancelling.is_over(decision, frame):
        return
    if frame.owner is None:
        decision.emit("ExecutionSucceeded", previous=exited, details={"output": data})
        return
    owner = decision.frame(frame.owner)
    if isinstance(decision.state_of(owner), MapState):
        details = {"index": frame.lane, "name": owner.position}
        decision.emit("MapIterationSucceeded", frame=frame.id, previous=exited, details=details)
    lanes.ended(decision, decision.frame(owner.id), exited)


# -- tasks -----------------------------------------------------------------------------------------


def schedule(
    decision: Decision,
    frame: Frame,
    state: TaskState,
    *,
    due_ms: int | None = None,
    retrier: int | None = None,
) -> None:
    """Schedule an attempt. If `due_ms` is in the future, the attempt begins then and gets its lease
    then.
    """
    own: dict[str, Any] = {"entry": decision.state.next_entry, "attempt": 1}
    if retrier is not None:
        assert isinstance(frame.waiting, FailedState)
        own |= {"entry": frame.waiting.entry, "attempt": frame.waiting.attempt + 1}
        own["retrier"] = retrier
    token = None
    if state.kind in ANSWERED_LATER:
        token = decision.moment.token(own["entry"], own["attempt"])
    try:
        details = _scheduled_details(decision, frame, state, token)
    except StateError as error:
        # This failure may come before any event is in the log, and a retry at once would then loop
        # without an event. So only States.Runtime is allowed here, which no Retry handles.
        has_event, is_final = isinstance(error, EvaluationError), error.error == error_names.RUNTIME
        assert retrier is None or has_event or is_final
        fail_state(decision, frame, error)
        return
    own |= _lease_or_due(decision, state, due_ms, details.get("timeoutInSeconds"))
    scheduled = decision.emit(
        event_type(state, "Scheduled"),
        frame=frame.id,
        previous=frame.previous,
        details=details,
        **own,
    )
    # For other tasks this event comes later. An attempt that a worker runs gets it together with
    # the event of its end, and the task of an activity gets it when a poller takes the task.
    if state.kind not in ATTEMPTED and state.kind != "activity":
        decision.emit("TaskStarted", frame=frame.id, previous=scheduled, details=resource_of(state))


def _lease_or_due(
    decision: Decision, state: TaskState, due_ms: int | None, timeout_seconds: int | None
) -> dict[str, Any]:
    """Return the lease of an attempt that begins now, or the due time of a later one."""
    # During a pause no attempt may begin, so none gets a lease: an attempt with a lease begins at
    # once.
    is_paused = decision.state.paused is not None
    if due_ms is not None and (due_ms > decision.moment.now_ms or is_paused):
        return {"due": due_ms}
    return decision.claim(timeout_seconds) if state.kind in ATTEMPTED else {}


def _scheduled_details(
    decision: Decision, frame: Frame, state: TaskState, token: str | None
) -> dict[str, Any]:
    """Return the details of the task's Scheduled event. Raises StateError when a field of the task
    cannot be evaluated.
    """
    named, arguments = resource_of(state), frame.input
    if state.arguments is not None:
        arguments = decision.evaluate(state.arguments, frame, token=token)
        too_large = oversize(decision, frame.position, arguments)
        if too_large is not None:
            raise too_large
    if state.kind in TASK_EVENTS:
        details: dict[str, Any] = {"resource": _offered_to(state, arguments), "input": arguments}
    else:
        _require_usable(decision, state, arguments)
        details = {**named, "region": _region(decision), "parameters": arguments}
    timeout = _seconds(decision, frame, state.timeout_seconds, "TimeoutSeconds")
    heartbeat = _seconds(decision, frame, state.heartbeat_seconds, "HeartbeatSeconds")
    if timeout is not None:
        details["timeoutInSeconds"] = timeout
    if heartbeat is not None:
        details["heartbeatInSeconds"] = heartbeat
    if state.credentials is not None:
        details["taskCredentials"] = _credentials(decision.evaluate(state.credentials, frame))
    return details


def _offered_to(state: TaskState, arguments: Json) -> str:
    """Return the activity or the pool that the task is offered to, for its Scheduled event. The
    event keeps a pool that the arguments name, so that a recovery offers the task to the same one.
    """
    if state.resource != CHOSEN_POOL:
        return state.resource
    pool = arguments.get("pool") if isinstance(arguments, dict) else None
    if not is_pool_name(pool):
        problem = f"ValueError: {pool!r:.100} is not the name of a pool"
        raise EvaluationError("Arguments/pool", problem, is_late=True)
    return f"{POOL}{pool}"


def _require_usable(decision: Decision, state: TaskState, arguments: Json) -> None:
    """Refuse arguments that are no request of the action. As on AWS the state itself fails, before
    its task is scheduled. A workflow is not AWS's, and its task fails.
    """
    if decision.state.origin is not None:
        misuse = decision.moment.misuse(state.target, arguments)
        if misuse is not None:
            raise StateError(error_names.RUNTIME, misuse)


def _region(decision: Decision) -> str:
    origin = decision.state.origin
    return OWN_REGION if origin is None else origin["state_machine_arn"].split(":")[3]


def _credentials(value: Json) -> dict[str, Json]:
    role = value.get("RoleArn") if isinstance(value, dict) else None
    if not isinstance(role, str):
        from holdfast.asl.field_errors import not_a_role  # noqa: PLC0415  # for cold starts

        raise StateError(error_names.RUNTIME, not_a_role(value))
    return {"roleArn": role}


def _seconds(decision: Decision, frame: Frame, template: Template | None, where: str) -> int | None:
    if template is None:
        return None
    return whole_seconds(decision.evaluate(template, frame), where, least=1)


# -- failing ---------------------------------------------------------------------------------------


def fail_state(
    decision: Decision, frame: Frame, error: StateError, *, is_caught: bool = False
) -> None:
    """Fail a state, one field of which cannot be evaluated. As on AWS, only the failure of a
    JSONata field is an event of its own.
    """
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
            # AWS names no field when the error is in the input of the state itself.
            **({"location": error.location} if error.location else {}),
            "state": frame.position,
        }
        # In AWS's histories a failure right after the entry of the state has the same previous
        # event as the entry.
        is_at_entry = frame.previous == frame.entered_event and not error.is_late
        previous = frame.entry_previous if is_at_entry else frame.previous
        decision.emit("EvaluationFailed", frame=frame.id, previous=previous, details=details)
    has_entered = decision.frame(frame.id).position != ""
    if is_caught or not has_entered or error.error == error_names.RUNTIME:
        # Pass the error on without a failure of the state, as AWS does in two cases. An iteration
        # whose ItemSelector failed has not entered a state that could handle the error, and
        # States.Runtime is never handled.
        pass_on(decision, decision.frame(frame.id), Failure(error.error, cause))
    else:
        handle_failure(decision, frame.id, Failure(error.error, cause))


def handle_failure(
    decision: Decision, frame_id: str, failure: Failure, failed: Frame | None = None
) -> None:
    """Handle a failure that is in the log: retry the state, catch the error, or pass it on.

    `failed` is the lane of a Parallel or Map in which the failure happened.
    """
    frame = decision.frame(frame_id)
    state = decision.state_of(frame)
    if not isinstance(state, TaskState | ParallelState | MapState):
        pass_on(decision, frame, failure)
        return
    previous = frame.previous if failed is None else failed.previous
    if isinstance(state, ParallelState | MapState):
        closing: Closing = {
            "then": "fail",
            "error": failure.error,
            "cause": failure.cause,
            "previous": previous,
        }
        if cancelling.close(decision, frame, closing, failed):
            return
        abort_lanes(decision, frame, failed)
    settle_failure(decision, frame, failure, previous)


def settle_failure(decision: Decision, frame: Frame, failure: Failure, previous: int) -> None:
    """Retry, catch or pass on a failure, when all lanes below this state have ended."""
    state = decision.state_of(frame)
    assert isinstance(state, TaskState | ParallelState | MapState)
    name = failure.handled_as or failure.error or ""
    retried = find_retrier(state.retry, name, frame.retries)
    if retried is not None:
        _retry(decision, frame, state, retried, previous)
        return
    if isinstance(state, ParallelState | MapState):
        decision.emit(f"{type(state).__name__}Failed", frame=frame.id, previous=previous)
        frame = decision.frame(frame.id)
    catcher = find_catcher(state.catch, name)
    if catcher is None:
        pass_on(decision, frame, failure)
        return
    found: Json = failure.caught()
    leave(
        decision,
        frame,
        catcher.next,
        (catcher.assign, catcher.output),
        default=found,
        extra={"errorOutput": found},
        is_caught=True,
    )


def abort_lanes(decision: Decision, owner: Frame, failed: Frame | None) -> None:
    """Emit "…StateAborted" for each open state that ends together with its Parallel or Map.

    The order is that of recorded AWS histories. The failed iteration of a Map gets an event of its
    own; a failed branch of a Parallel gets none.
    """
    for lane in [lane for lane in decision.state.frames.values() if lane.owner == owner.id]:
        has_failed = failed is not None and lane.id == failed.id
        if has_failed and not isinstance(decision.state_of(owner), MapState):
            abort_state(decision, lane)
        elif not has_failed:
            abort_lane(decision, owner, lane)


def abort_lane(decision: Decision, owner: Frame, lane: Frame) -> None:
    abort_state(decision, lane)
    if isinstance(decision.state_of(owner), MapState):
        details = {"index": lane.lane, "name": owner.position}
        previous = decision.frame(lane.id).previous
        decision.emit("MapIterationAborted", frame=lane.id, previous=previous, details=details)


def abort_state(decision: Decision, lane: Frame) -> None:
    state = decision.state_of(lane)
    # The branches or iterations of a lane end together with the lane.
    if isinstance(lane.waiting, Lanes):
        abort_lanes(decision, lane, None)
    if isinstance(state, TaskState | WaitState | ParallelState | MapState):
        note_started(decision, lane)
        previous = decision.frame(lane.id).previous
        if isinstance(state, MapState) and state.run is not None and _has_run(lane.waiting):
            previous = decision.emit("MapRunAborted", frame=lane.id, previous=previous)
        decision.emit(f"{type(state).__name__}Aborted", frame=lane.id, previous=previous)


def _has_run(waiting: WaitingFor) -> bool:
    """Return True while a distributed Map has a Map Run: its items are read, its children run, or
    its results are written. Before a retry it has none.
    """
    return isinstance(waiting, ChildExecutions | Attempt)


def _retry(
    decision: Decision,
    frame: Frame,
    state: TaskState | ParallelState | MapState,
    retried: tuple[int, Retrier],
    previous: int,
) -> None:
    number, retrier = retried
    delay = delay_ms(retrier, frame.retries.get(number, 0), decision.moment.draw())
    due_ms = decision.moment.now_ms + delay
    if isinstance(state, TaskState) and _has_attempt(frame):
        # Count the retry before the arguments are evaluated, because they may read
        # State.RetryCount.
        counted = {**frame.retries, number: frame.retries.get(number, 0) + 1}
        schedule(decision, frame._replace(retries=counted), state, due_ms=due_ms, retrier=number)
    else:
        # This is the retry of a Parallel or Map, or of a task whose own expressions failed. It has
        # no attempt that could be delayed, so the delay is a wait of its own. After it, the state
        # begins its work again and counts the retry.
        decision.emit(
            "RetryDelayed",
            frame=frame.id,
            previous=previous,
            entry=decision.state.next_entry,
            due=due_ms,
            retrier=number,
        )


def _has_attempt(frame: Frame) -> bool:
    return isinstance(frame.waiting, FailedState) and frame.waiting.entry is not None


def pass_on(decision: Decision, frame: Frame, failure: Failure) -> None:
    """Pass on a failure that no Retry or Catch handles: a failed lane fails its owner, and a failed
    main line fails the execution.
    """
    if cancelling.has_failed(decision, frame):
        return
    if frame.owner is None:
        details = failure.details()
        decision.emit("ExecutionFailed", previous=frame.previous, details=details)
        return
    owner = decision.frame(frame.owner)
    if isinstance(decision.state_of(owner), MapState):
        lane: dict[str, Any] = {"index": frame.lane, "name": owner.position}
        decision.emit("MapIterationFailed", frame=frame.id, previous=frame.previous, details=lane)
    if not lanes.is_tolerated(decision, frame, owner, failure):
        handle_failure(decision, owner.id, failure, frame)
