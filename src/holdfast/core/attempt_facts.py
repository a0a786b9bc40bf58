"""Facts about one attempt or one wait: its result, its failure, its lease, its place at a gate.

Each fact names the entry of a wait and mostly the number of an attempt. If the wait has ended, or a
newer attempt has replaced that one, the fact has no effect. So a worker may offer a fact again, and
the late result of an old attempt is lost.

    scheduled ──► TakenOver ──► Submitted ──► Polled, HeartbeatSeen
        │                           └────────► Succeeded, FailedWith, EventReceived, Renewed
        ├──► Refused ──► Granted (the gates of limits)
        └──► Succeeded, FailedWith, TimedOut, TaskUnknown
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, assert_never

from holdfast.asl import error_names
from holdfast.asl.program import MapState, PollRule, TaskState
from holdfast.core import cancelling, facts, map_run, steps
from holdfast.core.decision import (
    Decision,
    event_type,
    oversize,
    resource_of,
    result_name,
    started_event,
)
from holdfast.core.flow import Failure, enter, handle_failure, leave
from holdfast.core.retry import poll_delay_ms, poll_seconds
from holdfast.core.state import (
    ANSWERED_LATER,
    ROOT,
    Admission,
    Attempt,
    Awaiting,
    Execution,
    Frame,
    WaitingFor,
)
from holdfast.limits import CAUSE_CHARACTERS_MAX, ERROR_CHARACTERS_MAX, TAKEOVERS_MAX

WORKER_LOST: Final = "Holdfast.WorkerLost"
#: The name of `holdfast.StepInterrupted`.
STEP_INTERRUPTED: Final = "StepInterrupted"


def use(decision: Decision, fact: facts.AttemptFact) -> None:
    match fact:
        case facts.Succeeded():
            _succeeded(decision, fact)
        case facts.Renewed():
            _renewed(decision, fact)
        case facts.Submitted():
            _submitted(decision, fact)
        case facts.ActivityStarted():
            _activity_started(decision, fact)
        case facts.Polled():
            _polled(decision, fact)
        case facts.FailedWith():
            _failed(decision, fact)
        case facts.TimedOut():
            _failed(decision, facts.FailedWith(fact.entry, fact.attempt, error_names.TIMEOUT, None))
        case facts.EventReceived():
            _event_received(decision, fact)
        case facts.HeartbeatSeen():
            _heartbeat_seen(decision, fact)
        case facts.TakenOver():
            _taken_over(decision, fact)
        case facts.TaskUnknown():
            _task_unknown(decision, fact)
        case facts.Refused():
            _refused(decision, fact)
        case facts.Granted():
            _granted(decision, fact)
        case _:
            assert_never(fact)


def _current(
    decision: Decision, entry: int, attempt: int
) -> tuple[Frame, TaskState | MapState, Attempt | Awaiting] | None:
    """Return the frame, the state and the wait that a result is for. None when the wait has ended
    or a newer attempt has replaced this one.
    """
    frame = decision.state.frame_of(entry)
    if frame is None or not isinstance(frame.waiting, Attempt | Awaiting):
        return None
    if frame.waiting.attempt != attempt:
        return None
    state = decision.state_of(frame)
    assert isinstance(state, TaskState | MapState)
    return frame, state, frame.waiting


# -- results ---------------------------------------------------------------------------------------


def _succeeded(decision: Decision, fact: facts.Succeeded) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    # The answer may arrive while the worker's call that requests it still runs. It is ignored here,
    # and the worker reads the stored answer again after the call. So the answer is not lost.
    if found is None or _is_called(found[2]):
        return
    frame, state, waiting = found
    match state:
        case TaskState(poll=PollRule() as rule) if fact.output is None:
            assert isinstance(waiting, Attempt)
            _poll_again(decision, frame, waiting, rule)
        case TaskState():
            own: dict[str, Any] = {"by": fact.by} if fact.by else {}
            if fact.cached is not None:
                own["cached"] = fact.cached
            _complete(decision, frame, state, fact.output, **own)
        case MapState():
            map_run.attempt_succeeded(decision, frame, state, fact.output)
        case _:
            assert_never(state)


def _poll_again(decision: Decision, frame: Frame, polled: Attempt, rule: PollRule) -> None:
    """Record that the task returned no value, and schedule the next poll as a new attempt. So a
    late result of this attempt has no effect.
    """
    polls = polled.polls + 1
    decision.emit(
        "ConditionUnmet",
        frame=frame.id,
        entry=polled.entry,
        attempt=polled.attempt + 1,
        polls=polls,
        due=decision.moment.now_ms + poll_delay_ms(rule, polls),
    )


def _renewed(decision: Decision, fact: facts.Renewed) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is None:
        return
    frame, state, _ = found
    assert isinstance(state, TaskState)
    is_cancelled = cancelling.outlasting(decision, frame) is not None
    if is_cancelled or decision.state.stopping is not None:
        # The execution is being stopped, and this statement does not wait, or is shielded. Now the
        # stop takes effect, so the statement only completes. If the execution continued as new
        # here, the stop would be lost.
        _complete(decision, frame, state, None)
        return
    previous = started_event(decision, frame, state)
    own: dict[str, Any] = {}
    if decision.state.due_ms is None and fact.program.timeout_seconds is not None:
        # The execution has waited without a time-out until its start, or its code had none before.
        own["due"] = decision.moment.now_ms + fact.program.timeout_seconds * 1_000
    decision.emit("ContinuedAsNew", definition=fact.program.hash, input=fact.input, **own)
    decision.go_on_with(fact.program)
    enter(decision, ROOT, fact.program.start_at, fact.input, previous)
    hold_back(decision, fact)


def _is_called(waiting: Attempt | Awaiting) -> bool:
    return isinstance(waiting, Attempt) and waiting.kind in ANSWERED_LATER


def _submitted(decision: Decision, fact: facts.Submitted) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is None or not _is_called(found[2]):
        return
    frame, state, waiting = found
    assert isinstance(state, TaskState)
    previous = started_event(decision, frame, state)
    too_large = oversize(decision, result_name(state, waiting), fact.output)
    if too_large is not None:
        _fail(decision, frame, previous, Failure(too_large.error, too_large.cause))
        return
    details = {**resource_of(state), "output": fact.output}
    decision.emit("TaskSubmitted", frame=frame.id, previous=previous, details=details)


def _polled(decision: Decision, fact: facts.Polled) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is None or not isinstance(found[2], Awaiting):
        return
    waiting = found[2]
    if waiting.poll_due_ms is None or waiting.polls != fact.number:
        return
    polls = waiting.polls + 1
    due_ms = decision.moment.now_ms + poll_seconds(polls) * 1_000
    decision.emit("Polled", frame=found[0].id, polls=polls, due=due_ms)


def _activity_started(decision: Decision, fact: facts.ActivityStarted) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is None or not isinstance(found[2], Awaiting) or found[2].is_begun:
        return
    details = {} if fact.worker is None else {"workerName": fact.worker}
    frame = found[0]
    decision.emit("ActivityStarted", frame=frame.id, previous=frame.previous, details=details)


def _event_received(decision: Decision, fact: facts.EventReceived) -> None:
    frame = decision.state.frame_of(fact.entry)
    if frame is None or not isinstance(frame.waiting, Awaiting):
        return
    is_used = fact.event_id in decision.state.used_events
    if is_used or fact.expires_ms <= decision.moment.now_ms:
        return
    state = decision.state_of(frame)
    assert isinstance(state, TaskState)
    own = {"event": fact.event_id, "expires": fact.expires_ms}
    if fact.error is not None:
        previous = started_event(decision, frame, state)
        _fail(decision, frame, previous, Failure(fact.error, fact.cause), own)
        return
    _complete(decision, frame, state, fact.data, **own)


def _complete(decision: Decision, frame: Frame, state: TaskState, output: Any, **own: Any) -> None:
    assert isinstance(frame.waiting, Attempt | Awaiting)
    has_begun = "cached" not in own
    previous = started_event(decision, frame, state) if has_begun else frame.previous
    too_large = oversize(decision, result_name(state, frame.waiting), output)
    if too_large is not None:
        # The event of a wait is used all the same. Otherwise the next wait would get it again.
        _fail(decision, frame, previous, Failure(too_large.error, too_large.cause), own)
        return
    details = {**resource_of(state), "output": output}
    succeeded = event_type(state, "Succeeded")
    decision.emit(succeeded, frame=frame.id, previous=previous, details=details, **own)
    leave(
        decision,
        decision.state.frames[frame.id],
        state.next,
        (state.assign, state.output),
        default=output,
        extra={"result": output},
    )


# -- failures --------------------------------------------------------------------------------------


def _failed(decision: Decision, fact: facts.FailedWith) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is not None:
        _fail_attempt(decision, found[0], found[1], fact)


def _fail_attempt(
    decision: Decision,
    frame: Frame,
    state: TaskState | MapState,
    fact: facts.FailedWith,
) -> None:
    error = None if fact.error is None else fact.error[:ERROR_CHARACTERS_MAX]
    cause = None if fact.cause is None else fact.cause[:CAUSE_CHARACTERS_MAX]
    failure = Failure(error, cause)
    match state:
        case TaskState():
            previous = started_event(decision, frame, state)
            own = {} if fact.traceback is None else {"traceback": fact.traceback}
            _fail(decision, frame, previous, failure, own)
        case MapState():
            map_run.fail_run(decision, frame, failure)
        case _:
            assert_never(state)


def _fail(
    decision: Decision,
    frame: Frame,
    previous: int,
    failure: Failure,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the failure of a task, with the fields `own`, and continue at its handler."""
    state = decision.state_of(frame)
    assert isinstance(state, TaskState)
    event = event_type(state, _failure_name(decision.state, frame.waiting, failure))
    details = {**resource_of(state), **failure.details()}
    decision.emit(event, frame=frame.id, previous=previous, details=details, **own)
    handle_failure(decision, frame.id, failure)


def _failure_name(execution: Execution, waiting: WaitingFor, failure: Failure) -> str:
    """Return the end of the name of the event.

    An activity's task that fails before a poller has taken it could not be scheduled. A call that
    fails although its result was to come later could not be submitted (AWS docs,
    TaskSubmitFailedEventDetails); a workflow has no such event.
    """
    if failure.error == error_names.TIMEOUT and failure.cause is None:
        return "TimedOut"
    match waiting:
        case Awaiting(kind="activity", is_begun=False):
            return "ScheduleFailed"
        case Attempt(kind="callback" | "sync") if execution.origin is not None:
            return "SubmitFailed"
        case _:
            return "Failed"


def _heartbeat_seen(decision: Decision, fact: facts.HeartbeatSeen) -> None:
    frame = decision.state.frame_of(fact.entry)
    if frame is None or not isinstance(frame.waiting, Awaiting):
        return
    seconds, due_ms = frame.waiting.heartbeat_seconds, frame.waiting.heartbeat_due_ms
    if seconds is not None and due_ms is not None and fact.at_ms + seconds * 1_000 > due_ms:
        decision.emit("HeartbeatSeen", frame=frame.id, beat=fact.at_ms)


def fire(decision: Decision, frame: Frame) -> None:
    if isinstance(frame.waiting, Awaiting):
        # AWS reports a missed heartbeat as States.Timeout. But a Retry or Catch that names
        # States.HeartbeatTimeout must match it, too.
        handled_as = error_names.HEARTBEAT_TIMEOUT if _is_heartbeat_missed(frame.waiting) else None
        _fail(decision, frame, frame.previous, Failure(error_names.TIMEOUT, None, handled_as))
    else:
        steps.wake(decision, frame)


def _is_heartbeat_missed(waiting: Awaiting) -> bool:
    """Return True when an overdue wait missed its heartbeat before its time-out passed."""
    due_ms, heartbeat_due_ms = waiting.due_ms, waiting.heartbeat_due_ms
    return heartbeat_due_ms is not None and (due_ms is None or heartbeat_due_ms < due_ms)


# -- leases ----------------------------------------------------------------------------------------


def _taken_over(decision: Decision, fact: facts.TakenOver) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is None or not isinstance(found[2], Attempt):
        return
    frame, state, waiting = found[0], found[1], found[2]
    if decision.state.paused is not None and not fact.is_handed:
        # During a pause no worker takes over the attempt of a crashed worker.
        return
    was_lost = waiting.claim is not None and not fact.is_handed
    takeovers = waiting.takeovers + was_lost
    if was_lost and _runs_once(state):
        cause = f"the worker was lost while it ran {waiting.target}, which runs at most once"
        lost = facts.FailedWith(fact.entry, fact.attempt, STEP_INTERRUPTED, cause)
        _fail_attempt(decision, frame, state, lost)
        return
    if takeovers > TAKEOVERS_MAX:
        cause = f"{takeovers} workers in a row were lost while they ran {waiting.target}"
        lost = facts.FailedWith(fact.entry, fact.attempt, WORKER_LOST, cause)
        _fail_attempt(decision, frame, state, lost)
        return
    _claim(decision, frame, waiting, takeovers)


def _runs_once(state: TaskState | MapState) -> bool:
    return isinstance(state, TaskState) and state.is_at_most_once


def _claim(decision: Decision, frame: Frame, waiting: Attempt, takeovers: int) -> None:
    claim = decision.claim(waiting.timeout_seconds)
    if claim:
        decision.emit("Claimed", frame=frame.id, **claim, takeovers=takeovers)


def _task_unknown(decision: Decision, fact: facts.TaskUnknown) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is None or not isinstance(found[2], Attempt) or found[2].is_unknown:
        return
    decision.emit("TaskUnknown", frame=found[0].id)


# -- the gates of limits ---------------------------------------------------------------------------


def _refused(decision: Decision, fact: facts.Refused) -> None:
    """Record that a gate (a limit) refused an attempt: release its lease, so that the attempt waits
    at the gate. An attempt that already waits at that gate stays there.
    """
    own = _place(decision, fact.entry, fact)
    frame = decision.state.frame_of(fact.entry)
    if frame is not None and isinstance(frame.waiting, Admission):
        decision.emit("ExecutionQueued", **own)
        return
    found = _current(decision, fact.entry, fact.attempt)
    if found is None or not isinstance(found[2], Attempt):
        return
    queued = found[2].queued
    if queued is not None and queued.gate == fact.queued.gate:
        return
    decision.emit("AttemptQueued", frame=found[0].id, **own)


def _place(decision: Decision, entry: int, fact: facts.Refused) -> dict[str, Any]:
    """Return the fields of an event that records a wait in a gate's queue."""
    queued = fact.queued
    own: dict[str, Any] = {"entry": entry, "gate": queued.gate}
    if fact.reason:
        own |= {"reason": fact.reason, "by": fact.by}
    if queued.fair:
        own["fair"] = queued.fair
    if queued.kept:
        own["kept"] = [list(permit) for permit in queued.kept]
    if queued.is_front:
        own["front"] = True
    if queued.since_ms != decision.moment.now_ms:
        own["since"] = queued.since_ms
    return own


def hold_back(decision: Decision, fact: facts.Started | facts.Renewed) -> None:
    if fact.refused is not None:
        own = _place(decision, decision.state.next_entry, fact.refused)
        decision.emit("ExecutionQueued", **own)


def _granted(decision: Decision, fact: facts.Granted) -> None:
    """Let a queued execution or attempt begin. If the gate wakes it twice, only the first wake
    counts: that wake ends the wait or takes the lease.
    """
    frame = decision.state.frame_of(fact.entry)
    if frame is not None and isinstance(frame.waiting, Admission):
        if frame.waiting.queued.gate == fact.gate and decision.state.paused is None:
            decision.emit("ExecutionAdmitted", frame=frame.id)
            decision.entered.append(frame.id)
        return
    found = _current(decision, fact.entry, fact.attempt)
    if found is None or not isinstance(found[2], Attempt) or decision.state.paused is not None:
        return
    queued = found[2].queued
    if queued is not None and queued.gate == fact.gate:
        _claim(decision, found[0], found[2], found[2].takeovers)
