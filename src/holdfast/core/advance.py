"""`advance`: which events follow from a fact. It is a pure function: the time, the random numbers
and the facts are arguments.

The problem. Several workers may process one execution at the same time, each worker may crash after
any effect, and every message may arrive twice. So the decision what happens next depends only on
the history and on the offered facts. Then any worker may decide. If the commit of a decision is
refused, because another worker committed first, the worker decides again on the newer history.

    facts ──► advance(program, state, facts, inputs) ──► events, and the state after them
                 │                                         │
                 │  offer one fact: its events             └─► one record
                 │  settle: leave each state that
                 │          needs no wait
                 └─ next fact

Rules of this file:
* A fact that does not fit the state has no effect: it causes no event and no error. So a worker may
  offer a fact again after a refused commit or a second delivery.
* Each event is applied to the state when it is emitted. The state in hand therefore always equals
  the fold of the events so far.
* After every fact the execution settles: each state that can be left without waiting is left in the
  same record, up to a budget. Past the budget the record ends at an entered state, and `has_more`
  is true: a worker continues from there.
* Stops are offered first. An execution that loops without a wait never settles, so a stop that was
  offered after it would never be applied.
* A decision that depends on time uses `now - 2 x clock error`: so no timer fires early, even if the
  clock of this host is ahead.
* A paused execution applies facts, but does not settle (`pausing.py`).

Example. The task `reserve` waits under the entry number 0; `ship` follows, then a wait of an hour.

    12:00:00  Started            ExecutionStarted, TaskStateEntered, TaskScheduled {entry 0}
    12:00:02  Succeeded(0, 1)    TaskStarted, TaskSucceeded, TaskStateExited, TaskStateEntered,
                                 TaskScheduled {entry 1}
    12:00:02  Succeeded(0, 1)    none: entry 0 is closed
    12:00:05  Succeeded(1, 1)    ..., WaitStateEntered, TimerSet {entry 2, due 13:00:05}
    13:00:05  Tick               none: this host's clock may be ahead by its error
    13:00:06  Tick               WaitStateExited, ExecutionSucceeded

The parts: `flow` enters, leaves, schedules and fails states; `steps` evaluates one state; `lanes`
starts and joins the branches of a Parallel and the iterations of a Map; `cancelling` undoes;
`map_run` runs distributed Maps; `waits` says what each kind of wait means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, assert_never

from holdfast.asl import error_names
from holdfast.asl.program import MapState, PollRule, Program, TaskState
from holdfast.core import cancelling, facts, forking, map_run, migrating, pausing, skipping, steps
from holdfast.core.apply.map_run import children_to_resume
from holdfast.core.decision import (
    Decision,
    HistoryFullError,
    event_type,
    note_started,
    oversize,
    resource_of,
    result_name,
    started_event,
)
from holdfast.core.events import Event
from holdfast.core.facts import DecisionInputs, Fact
from holdfast.core.flow import enter, handle_failure, leave
from holdfast.core.retry import poll_delay_ms, poll_seconds
from holdfast.core.state import (
    ANSWERED_LATER,
    PRIORITY_DEFAULT,
    ROOT,
    Admission,
    Attempt,
    Awaiting,
    Entered,
    Execution,
    Frame,
    MachineOrigin,
    WaitingFor,
)
from holdfast.core.waits import abandoned, is_frozen, is_overdue, overdue
from holdfast.errors import HoldfastBug
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    CAUSE_CHARACTERS_MAX,
    CLOCK_ERROR_MS,
    ERROR_CHARACTERS_MAX,
    EVENTS_MAX,
    EXPRESS_SECONDS_MAX,
    HISTORY_EVENTS_MAX,
    PURE_STATES_PER_RECORD_MAX,
    TAKEOVERS_MAX,
)

WORKER_LOST: Final = "Holdfast.WorkerLost"
#: The name of `holdfast.StepInterrupted`.
STEP_INTERRUPTED: Final = "StepInterrupted"
TOO_MANY_EVENTS: Final = "Holdfast.TooManyEvents"


@dataclass(frozen=True, slots=True)
class Transition:
    """The result of a decision: the events to commit, and the state after them."""

    events: tuple[Event, ...]
    state: Execution


def advance(
    program: Program, state: Execution | None, offered: Sequence[Fact], moment: DecisionInputs
) -> Transition:
    """Return the events that the facts cause. Without facts, continue an execution whose last
    record reached its budget.
    """
    decision = Decision(program, state, moment)
    if state is not None:
        decision.entered.extend(_entered_frames(state))
    try:
        _use(decision, offered)
    except HistoryFullError:
        _end_full(decision)
    return Transition(tuple(decision.events), decision.state)


def _use(decision: Decision, offered: Sequence[Fact]) -> None:
    # Apply a stop before the execution continues. An execution that loops without a wait has new
    # states to evaluate at the end of every record, so it would never reach a stop that is applied
    # afterwards.
    stops = [fact for fact in offered if isinstance(fact, facts.StopRequested)]
    for stop in stops:
        _offer_open(decision, stop)
    _settle(decision)
    for fact in offered:
        if fact not in stops:
            _offer_open(decision, fact)
    if not decision.is_started:
        raise HoldfastBug("an execution that has not started was asked for its state")


def note(
    program: Program, state: Execution | None, fact: Fact, moment: DecisionInputs
) -> Transition:
    """Return the events of this fact alone. The states that it enters are left for the next
    record.
    """
    decision = Decision(program, state, moment)
    _offer(decision, fact)
    return Transition(tuple(decision.events), decision.state)


def _offer_open(decision: Decision, fact: Fact) -> None:
    if not decision.is_started:
        is_open = isinstance(fact, facts.Started | facts.Forked)
    else:
        may_reopen = isinstance(fact, facts.RedriveRequested | facts.SkipRequested)
        is_open = may_reopen or not decision.state.is_ended
    if is_open:
        _offer(decision, fact)
        _settle(decision)


def _entered_frames(state: Execution) -> list[str]:
    return [frame.id for frame in state.frames.values() if isinstance(frame.waiting, Entered)]


def _settle(decision: Decision) -> None:
    if decision.entered and decision.state.paused is not None:
        # While the execution is paused, states that it has entered are not evaluated. The resume
        # evaluates them.
        return
    while decision.entered and decision.pure_states < PURE_STATES_PER_RECORD_MAX:
        frame = decision.state.frames.get(decision.entered.popleft())
        # The frame may no longer exist: after it was entered, another branch or iteration failed,
        # or the execution ended.
        if frame is not None and isinstance(frame.waiting, Entered):
            decision.pure_states += 1
            if decision.state.last_event - decision.state.renewed_event > EVENTS_MAX:
                _end_endless(decision, frame)
                return
            steps.run(decision, frame)


def _end_endless(decision: Decision, frame: Frame) -> None:
    """End an execution that loops forever without waiting. No catcher in the definition can catch
    this error: the catcher could be part of the loop.
    """
    note_started(decision)
    cause = f"The execution has more than {EVENTS_MAX} events."
    details = {"error": TOO_MANY_EVENTS, "cause": cause}
    decision.emit("ExecutionFailed", previous=frame.previous, details=details)


def _end_full(decision: Decision) -> None:
    """End an execution at AWS's last event (AWS docs, "Avoid reaching the history quota"). Nothing
    catches this error: there is no room for the events of a catcher.
    """
    if decision.state.is_ended:
        return
    cause = f"The execution reached the maximum number of history events ({HISTORY_EVENTS_MAX})."
    details = {"error": error_names.RUNTIME, "cause": cause}
    decision.emit("ExecutionFailed", previous=decision.state.last_event, details=details)


def _offer(decision: Decision, fact: Fact) -> None:
    match fact:
        case facts.Started():
            _start(decision, fact)
        case facts.Forked():
            _fork(decision, fact)
        case facts.Succeeded():
            _succeeded(decision, fact)
        case facts.Renewed():
            _renewed(decision, fact)
        case facts.Submitted():
            _submitted(decision, fact)
        case facts.ActivityStarted():
            _activity_started(decision, fact)
        case facts.ChildEnded():
            map_run.child_ended(decision, fact)
        case facts.Polled():
            _polled(decision, fact)
        case facts.FailedWith():
            _failed(decision, fact)
        case facts.TimedOut():
            _timed_out(decision, fact)
        case facts.EventReceived():
            _event_received(decision, fact)
        case facts.HeartbeatSeen():
            _heartbeat_seen(decision, fact)
        case facts.Tick():
            _tick(decision)
        case facts.TakenOver():
            _taken_over(decision, fact)
        case facts.TaskUnknown():
            _task_unknown(decision, fact)
        case facts.Refused():
            _refused(decision, fact)
        case facts.Granted():
            _granted(decision, fact)
        case facts.StopRequested():
            _stop(decision, fact)
        case facts.RedriveRequested():
            _redrive(decision, fact)
        case facts.PauseRequested():
            pausing.pause(decision, fact)
        case facts.ResumeRequested():
            pausing.resume(decision, fact)
        case facts.PriorityRequested():
            _prioritise(decision, fact)
        case facts.BoundsRequested():
            map_run.bounds_requested(decision, fact)
        case facts.SkipRequested():
            _skip(decision, fact)
        case facts.MigrateRequested():
            migrating.migrate(decision, fact)
        case facts.ChildrenStopped():
            _children_stopped(decision, fact)
        case facts.Opened():
            opened_at = decision.state.opened_at
            if opened_at is None or fact.sequence > opened_at:
                decision.emit("Opened", sequence=fact.sequence)
        case _:
            assert_never(fact)


def _start(decision: Decision, fact: facts.Started) -> None:
    if decision.is_started:
        return
    program = decision.program
    own: dict[str, Any] = {
        "run": fact.run,
        "workflow": fact.workflow,
        "definition": program.hash,
    }
    if fact.name is not None:
        own["name"] = fact.name
    timeout_seconds = _timeout_seconds(program, fact.origin)
    if timeout_seconds is not None:
        own["due"] = fact.started_ms + timeout_seconds * 1_000
    details: dict[str, Any] = {"input": fact.input}
    start_at = program.start_at
    if fact.origin is not None:
        own["origin"] = fact.origin
        details |= _machine(fact.origin)
        start_at = fact.origin.get("start_at", start_at)
    if fact.parent is not None:
        own["parent"] = fact.parent
    if fact.priority != PRIORITY_DEFAULT:
        own["priority"] = fact.priority
    decision.emit("ExecutionStarted", details=details, at_ms=fact.started_ms, **own)
    # In AWS's histories the event that enters the first state has 0 as its previous event.
    enter(decision, ROOT, start_at, fact.input, 0)
    _hold_back(decision, fact)


def _fork(decision: Decision, fact: facts.Forked) -> None:
    if not decision.is_started:
        forking.fork(decision, fact)
        _hold_back(decision, fact.started)


def _hold_back(decision: Decision, fact: facts.Started | facts.Renewed) -> None:
    if fact.refused is not None:
        own = _place(decision, decision.state.next_entry, fact.refused)
        decision.emit("ExecutionQueued", **own)


def _prioritise(decision: Decision, fact: facts.PriorityRequested) -> None:
    if not decision.state.is_ended and fact.control_id > decision.state.last_control:
        own: dict[str, Any] = {"control": fact.control_id, "reason": fact.reason, "by": fact.by}
        decision.emit("PriorityChanged", priority=fact.priority, **own)


def _timeout_seconds(program: Program, origin: MachineOrigin | None) -> int | None:
    """Return the time-out of the execution in seconds. An express execution has five minutes,
    whatever its definition says (AWS quota).
    """
    if origin is None or origin["type"] != "EXPRESS":
        return program.timeout_seconds
    return min(program.timeout_seconds or EXPRESS_SECONDS_MAX, EXPRESS_SECONDS_MAX)


def _machine(origin: MachineOrigin) -> dict[str, str]:
    """Return the ARNs of the state machine, as AWS's ExecutionStarted has them."""
    arns = {
        "roleArn": origin["role_arn"],
        "stateMachineAliasArn": origin.get("alias_arn"),
        "stateMachineVersionArn": origin.get("version_arn"),
    }
    return {name: arn for name, arn in arns.items() if arn is not None}


# -- results ---------------------------------------------------------------------------------------


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
    _hold_back(decision, fact)


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
        _fail(decision, frame, previous, too_large.error, too_large.cause)
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
        _fail(decision, frame, previous, fact.error, fact.cause, own=own)
        return
    _complete(decision, frame, state, fact.data, **own)


def _complete(decision: Decision, frame: Frame, state: TaskState, output: Any, **own: Any) -> None:
    assert isinstance(frame.waiting, Attempt | Awaiting)
    has_begun = "cached" not in own
    previous = started_event(decision, frame, state) if has_begun else frame.previous
    too_large = oversize(decision, result_name(state, frame.waiting), output)
    if too_large is not None:
        # The event of a wait is used all the same. Otherwise the next wait would get it again.
        _fail(decision, frame, previous, too_large.error, too_large.cause, own=own)
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


def _failed(decision: Decision, fact: facts.FailedWith) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is not None:
        _fail_attempt(decision, found[0], found[1], fact)


def _timed_out(decision: Decision, fact: facts.TimedOut) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is not None:
        timed_out = facts.FailedWith(fact.entry, fact.attempt, error_names.TIMEOUT, None)
        _fail_attempt(decision, found[0], found[1], timed_out)


def _fail_attempt(
    decision: Decision,
    frame: Frame,
    state: TaskState | MapState,
    fact: facts.FailedWith,
) -> None:
    error = None if fact.error is None else fact.error[:ERROR_CHARACTERS_MAX]
    cause = None if fact.cause is None else fact.cause[:CAUSE_CHARACTERS_MAX]
    match state:
        case TaskState():
            previous = started_event(decision, frame, state)
            own = {} if fact.traceback is None else {"traceback": fact.traceback}
            _fail(decision, frame, previous, error, cause, own=own)
        case MapState():
            map_run.fail_run(decision, frame, error, cause)
        case _:
            assert_never(state)


def _fail(
    decision: Decision,
    frame: Frame,
    previous: int,
    error: str | None,
    cause: str | None,
    *,
    handled_as: str | None = None,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the failure of a task, with the fields `own`, and continue at its handler."""
    state = decision.state_of(frame)
    assert isinstance(state, TaskState)
    texts = {"error": error, "cause": cause}
    details = {key: text for key, text in texts.items() if text is not None}
    event = event_type(state, _failure_name(decision.state, frame.waiting, error, cause))
    details = {**resource_of(state), **details}
    decision.emit(event, frame=frame.id, previous=previous, details=details, **own)
    handle_failure(decision, frame.id, error, cause, handled_as=handled_as)


def _failure_name(
    execution: Execution, waiting: WaitingFor, error: str | None, cause: str | None
) -> str:
    """Return the end of the name of the event.

    An activity's task that fails before a poller has taken it could not be scheduled. A call that
    fails although its result was to come later could not be submitted (AWS docs,
    TaskSubmitFailedEventDetails); a workflow has no such event.
    """
    if error == error_names.TIMEOUT and cause is None:
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


# -- time ------------------------------------------------------------------------------------------


def _tick(decision: Decision) -> None:
    past_ms = decision.moment.now_ms - 2 * decision.moment.clock_error_ms
    due_ms = decision.state.due_ms
    if due_ms is not None and due_ms <= past_ms and not is_frozen(decision.state):
        pausing.lift(decision, pausing.TIMED_OUT)
        cancelling.time_out(decision)
        return
    for _, _, frame_id, due in sorted(overdue(decision.state, past_ms)):
        frame = decision.state.frames.get(frame_id)
        # An earlier time-out of this loop may have removed the frame or ended the execution.
        if frame is None:
            continue
        if due is not None and due in frame.deadlines:
            cancelling.pass_deadline(decision, frame, due)
        elif due is None and is_overdue(frame, past_ms):
            _fire(decision, frame)
        _settle(decision)


def _fire(decision: Decision, frame: Frame) -> None:
    if isinstance(frame.waiting, Awaiting):
        # AWS reports a missed heartbeat as States.Timeout. But a Retry or Catch that names
        # States.HeartbeatTimeout must match it, too.
        handled_as = error_names.HEARTBEAT_TIMEOUT if _is_heartbeat_missed(frame.waiting) else None
        _fail(decision, frame, frame.previous, error_names.TIMEOUT, None, handled_as=handled_as)
    else:
        steps.wake(decision, frame)


def _is_heartbeat_missed(waiting: Awaiting) -> bool:
    """Return True when an overdue wait missed its heartbeat before its time-out passed."""
    due_ms, heartbeat_due_ms = waiting.due_ms, waiting.heartbeat_due_ms
    return heartbeat_due_ms is not None and (due_ms is None or heartbeat_due_ms < due_ms)


# -- leases and control messages -------------------------------------------------------------------


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
    claim = decision.moment.claim(waiting.timeout_seconds)
    if claim is not None:
        claimed = [claim.owner, claim.message, claim.receive_count, claim.until_ms]
        decision.emit("Claimed", frame=frame.id, claim=claimed, takeovers=takeovers)


def _task_unknown(decision: Decision, fact: facts.TaskUnknown) -> None:
    found = _current(decision, fact.entry, fact.attempt)
    if found is None or not isinstance(found[2], Attempt) or found[2].is_unknown:
        return
    decision.emit("TaskUnknown", frame=found[0].id)


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


def _stop(decision: Decision, fact: facts.StopRequested) -> None:
    if is_stopped_by(decision.state, fact):
        pausing.lift(decision, pausing.STOPPED)
        cancelling.stop(decision, fact)


def _children_stopped(decision: Decision, fact: facts.ChildrenStopped) -> None:
    told = set(fact.children).intersection(abandoned(decision.state))
    if told:
        decision.emit("ChildrenStopped", children=[list(child) for child in sorted(told)])


def is_stopped_by(state: Execution, fact: facts.StopRequested) -> bool:
    """Return True when the stop changes the execution. A stop counts once, however often it is
    stored.

    A caller repeats a stop when the response to it was lost, and a parent execution that was
    stopped repeats it, too. If the second stop counted, it would end the undo that the first one
    began. Only a stop with `now` ends the execution before the undo has finished.
    """
    before = state.stopping
    is_asked_for = (
        before is not None and before["status"] == "ABORTED" and not before.get("by_parent", False)
    )
    return fact.control_id > state.last_control and (fact.now or not is_asked_for)


def is_skipped_by(state: Execution, fact: facts.SkipRequested) -> bool:
    """Return True when the step is open, or when the failed execution would open it again at a
    redrive.
    """
    if fact.control_id <= state.last_control or skipping.step_of(state, fact) is None:
        return False
    return not state.is_ended or is_redriven_by(state, fact)


def _skip(decision: Decision, fact: facts.SkipRequested) -> None:
    if not is_skipped_by(decision.state, fact):
        return
    if decision.state.is_ended:
        _redrive(decision, facts.RedriveRequested(fact.control_id, fact.reason, fact.by))
        if decision.state.is_ended:
            # The facts that are applied with this one have already ended the execution again (see
            # `_redrive`).
            return
    skipping.skip(decision, fact)


def is_redriven_by(state: Execution, fact: facts.RedriveRequested | facts.SkipRequested) -> bool:
    """Return True when the request applies to the present end of the execution.

    A request that was stored while the execution still ran, or before an earlier end, is ignored:
    its requester has not seen the present end. Ids of control messages begin with their time, so an
    older request has a smaller id.
    """
    if fact.control_id <= state.last_control or not state.resting or state.is_undone:
        return False
    if isinstance(fact, facts.RedriveRequested) and fact.round:
        return state.parent is not None and fact.round > state.parent.get("round", 0)
    assert state.stopped_ms is not None
    return fact.control_id >= f"{state.stopped_ms - 2 * CLOCK_ERROR_MS:015d}"


def _redrive(decision: Decision, fact: facts.RedriveRequested) -> None:
    """Continue an ended execution. As on AWS, only an execution that has not succeeded can
    continue, and its time-out counts from now.

    A redrive must be the first fact of its record. If an end came before it in the same record, the
    commands that follow that end would never be carried out: the execution's entry in the list
    would stay as it was. The requester also cannot have seen that end.
    """
    state = decision.state
    if decision.events or not is_redriven_by(state, fact):
        return
    own: dict[str, Any] = {"control": fact.control_id}
    words = {"reason": fact.reason, "by": fact.by}
    own |= {name: text for name, text in words.items() if text is not None}
    if fact.round:
        own["round"] = fact.round
    if decision.program.timeout_seconds is not None:
        own["due"] = decision.moment.now_ms + decision.program.timeout_seconds * 1_000
    map_runs = [one.id for one in state.resting.values() if children_to_resume(one.waiting)]
    if map_runs:
        own["map_runs"] = map_runs
    details = {"redriveCount": state.redrives + 1}
    decision.emit("ExecutionRedriven", previous=state.last_event, details=details, **own)
    for frame_id in map_runs:
        map_run.go_on(decision, frame_id)
    for frame in state.resting.values():
        for due in frame.deadlines if frame.id in decision.state.frames else ():
            cancelling.set_deadline(decision, frame.id, due.number, due.seconds)
    decision.entered.extend(_entered_frames(decision.state))
