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

The parts: `attempt_facts` uses the facts about one attempt or wait; `redriving`, `skipping`,
`pausing` and `migrating` carry out the requests of callers; `flow` enters, leaves, schedules and
fails states; `steps` evaluates one state; `lanes` starts and joins the branches of a Parallel and
the iterations of a Map; `cancelling` stops and undoes; `map_run` runs distributed Maps; `waits`
says what each kind of wait means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.program import Program
from holdfast.core import (
    attempt_facts,
    cancelling,
    facts,
    map_run,
    pausing,
    redriving,
    skipping,
    steps,
)
from holdfast.core.decision import (
    Decision,
    HistoryFullError,
    note_started,
)
from holdfast.core.events import Event
from holdfast.core.facts import DecisionInputs, Fact
from holdfast.core.flow import enter
from holdfast.core.state import (
    PRIORITY_DEFAULT,
    ROOT,
    Entered,
    Execution,
    Frame,
    MachineOrigin,
)
from holdfast.core.waits import abandoned, is_frozen, is_overdue, overdue
from holdfast.errors import HoldfastBug
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import (
    EVENTS_MAX,
    EXPRESS_SECONDS_MAX,
    HISTORY_EVENTS_MAX,
    PURE_STATES_PER_RECORD_MAX,
)

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
        decision.reenter()
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
        case facts.Tick():
            _tick(decision)
        case facts.ChildEnded():
            map_run.child_ended(decision, fact)
        case facts.ChildrenStopped():
            _children_stopped(decision, fact)
        case facts.Opened():
            opened_at = decision.state.opened_at
            if opened_at is None or fact.sequence > opened_at:
                decision.emit("Opened", sequence=fact.sequence)
        case facts.StopRequested():
            _stop(decision, fact)
        case facts.RedriveRequested():
            redriving.redrive(decision, fact)
        case facts.PauseRequested():
            pausing.pause(decision, fact)
        case facts.ResumeRequested():
            pausing.resume(decision, fact)
        case facts.PriorityRequested():
            _prioritise(decision, fact)
        case facts.BoundsRequested():
            map_run.bounds_requested(decision, fact)
        case facts.SkipRequested():
            skipping.skip(decision, fact)
        case facts.MigrateRequested():
            # Imported here for cold starts: few executions migrate.
            from holdfast.core import migrating  # noqa: PLC0415

            migrating.migrate(decision, fact)
        case _:
            attempt_facts.use(decision, fact)


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
    attempt_facts.hold_back(decision, fact)


def _fork(decision: Decision, fact: facts.Forked) -> None:
    if not decision.is_started:
        # Imported here for cold starts: few executions are forks.
        from holdfast.core import forking  # noqa: PLC0415

        forking.fork(decision, fact)
        attempt_facts.hold_back(decision, fact.started)


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
            attempt_facts.fire(decision, frame)
        _settle(decision)


def _stop(decision: Decision, fact: facts.StopRequested) -> None:
    if cancelling.is_stopped_by(decision.state, fact):
        pausing.lift(decision, pausing.STOPPED)
        cancelling.stop(decision, fact)


def _children_stopped(decision: Decision, fact: facts.ChildrenStopped) -> None:
    told = set(fact.children).intersection(abandoned(decision.state))
    if told:
        decision.emit("ChildrenStopped", children=[list(child) for child in sorted(told)])
