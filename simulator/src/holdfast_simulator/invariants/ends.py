"""I9, I13: how executions end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final

from holdfast.asl.program import ParallelState, Program
from holdfast.asl.resources import BULK_WORKFLOW
from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.core.run_ids import child_run
from holdfast.core.state import Execution
from holdfast.core.waits import abandoned
from holdfast.runtime.children import notice_key
from holdfast.runtime.effects import Item, Query
from holdfast.runtime.inbox import PARENT, REDRIVE
from holdfast.runtime.storage import keys, tables
from holdfast_simulator import dispatches
from holdfast_simulator.evidence import Evidence
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants import refusals
from holdfast_simulator.invariants.case import Case
from holdfast_simulator.invariants.commands import written_ms
from holdfast_simulator.invariants.dues import stuck_ms_max
from holdfast_simulator.invariants.lines import HistoryLines
from holdfast_simulator.invariants.programs import program_of
from holdfast_simulator.reference import interpreter
from holdfast_simulator.rulings import ended, rulings_of


def one_end(case: Case) -> Iterator[str]:
    """Check the ends of executions.

    Each execution ends once for each start or redrive, and the first cause decides its end. A stop
    that won is the only result from then on; a stop that lost leaves no trace. A requested stop or
    redrive takes effect in time, in child executions too.
    """
    mail = {(str(item["pk"]), str(item["sk"])) for item in case.services.items(tables.MAIL)}
    for history in case.histories:
        for text in _Ends(history, mail).read():
            yield f"{history.run}: {text}"
        program = program_of(case, history)
        if program is not None and any(event.type == "Cancelled" for event in history.events):
            for text in _Late(program).read(history.events):
                yield f"{history.run}: {text}"
    if case.evidence is not None:
        yield from _unheard(case)
        yield from _not_redriven(case)
        yield from refusals.of_stops(case)
        yield from _deserted(case)
        yield from _left_running(case)
        yield from _unheard_of_parents(case)


class _Ends:
    """The ends of one history, and the events that cause them."""

    def __init__(self, history: StoredHistory, mail: set[tuple[str, str]]) -> None:
        self.history = history
        self.inbox = keys.inbox(history.tenant, history.run)
        self.mail = mail
        self.stopping: Mapping[str, Any] | None = None
        self.ended: str | None = None
        self.due_ms: int | None = None
        self.last_control = ""
        self.has_undone = False
        self.reason: Mapping[str, Any] = {}

    def read(self) -> Iterator[str]:
        self.due_ms = self.history.begun.holdfast.get("due")
        for event in self.history.events[self.history.copied :]:
            control = event.holdfast.get("control")
            if control is not None:
                yield from self._controlled(event, control)
            if event.type in {"ExecutionStarted", "ExecutionRedriven"}:
                if self.ended == "ExecutionSucceeded":
                    yield "it has succeeded, and is redriven"
                if self.has_undone:
                    yield "it has taken back what it had done, and is redriven"
                self.ended = self.stopping = None
                self.due_ms = event.holdfast.get("due")
            elif event.type == "ContinuedAsNew":
                self.due_ms = event.holdfast.get("due", self.due_ms)
            elif event.type == "Stopping":
                yield from self._stopping(event)
            elif event.type in TERMINAL_EVENTS:
                yield from self._ended(event)
                self.ended = event.type
            elif "frame" not in event.holdfast:
                self._cancelled(event)

    def _cancelled(self, event: Event) -> None:
        """Cancel a line. A block whose deadline passes inside a shield undoes its own steps, and
        the line continues after it.
        """
        match event.type:
            case "Cancelled":
                self.reason = event.holdfast["reason"]
            case "DeadlinePassed":
                self.reason = self.reason.get("outer") or {}
            case _ if self.reason.get("deadline") in event.holdfast.get("over", ()):
                # The line has left the block, whose time was over, before the next step in it.
                self.reason = self.reason.get("outer") or {}
            case "UndoStarted" if self.stopping is not None and "deadline" not in self.reason:
                self.has_undone = True

    def _controlled(self, event: Event, control: str) -> Iterator[str]:
        if (self.inbox, keys.control(control)) not in self.mail:
            yield f"{event.type} by {control}, without a command"
        # A skip of a step of an ended execution continues it first, with the same request.
        is_second = event.type == "StepSkipped" and control == self.last_control
        if control <= self.last_control and not is_second:
            yield f"{event.type} by {control}, which has counted before"
        self.last_control = control

    def _stopping(self, event: Event) -> Iterator[str]:
        if event.holdfast["stopping"]["status"] == "TIMED_OUT":
            yield from self._in_time(event)
        if _is_asked_for(self.stopping):
            yield f"it is stopped, and was stopped before: {self.stopping}"
        self.stopping = event.holdfast["stopping"]

    def _ended(self, event: Event) -> Iterator[str]:
        is_stopped = event.type == "ExecutionAborted"
        if self.ended is not None:
            yield f"{event.type} after {self.ended}"
        if self.stopping is not None:
            is_as_said = is_stopped == (self.stopping["status"] == "ABORTED")
            if not is_as_said and "control" not in event.holdfast:
                yield f"{event.type}, and it was stopping: {self.stopping}"
        elif is_stopped and "control" not in event.holdfast:
            yield "it is aborted without a stop"
        elif event.type == "ExecutionTimedOut":
            yield from self._in_time(event)

    def _in_time(self, event: Event) -> Iterator[str]:
        if self.due_ms is None or event.at_ms < self.due_ms:
            yield f"it has timed out at {event.at_ms}, and its time is {self.due_ms}"


def _is_asked_for(stopping: Mapping[str, Any] | None) -> bool:
    """Return True when a caller requested the stop, and not the parent."""
    if stopping is None or stopping["status"] != "ABORTED":
        return False
    return "by_parent" not in stopping


#: Events that a line of control causes itself: it requests work outside, or opens branches or
#: iterations.
_STEPS: Final = ("Scheduled", "TimerSet", "ParallelStateStarted", "MapStateStarted")


class _Late(HistoryLines):
    """The rule for a cancelled line: it begins only undo steps and shielded steps."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.kept = frozenset[str]().union(*program.shielded, *(undo.own for undo in program.undos))

    def on_event(self, event: Event, frame: str) -> Iterator[str]:
        line = self.lines.get(frame)
        if line is None or line.cancelled is None or not event.type.endswith(_STEPS):
            return
        if line.position not in self.kept and not self._does_nothing(line.position):
            yield f"{event.type} at {line.position!r}, in a line that is cancelled"

    def _does_nothing(self, name: str) -> bool:
        """Return True for a Parallel with one branch in which the compiler only computes a
        condition.
        """
        state = self.program.states[name]
        return isinstance(state, ParallelState) and len(state.branches) == 1


def _unheard(case: Case) -> Iterator[str]:
    """Yield accepted stops that were not applied in time. Exceptions: the end came first, or its
    message vanished and the sweeper's check is later.
    """
    evidence = case.schedule
    asked = [told for told in evidence.told if told.what == "stop" and told.refused is None]
    wanted = {(told.tenant, str(told.run)) for told in asked}
    kept = {pk for pk, sk in evidence.stored if sk.startswith(keys.CONTROL_PREFIX)}
    for tenant, run in wanted:
        if keys.inbox(tenant, run) not in kept:
            yield f"the stop of {run} was accepted, and is not stored"
    written = written_ms(evidence)
    for history in case.histories:
        if (history.tenant, history.run) in wanted:
            late_ms = _late_ms_max(evidence, history.run)
            yield from _heard_late(case, history, written, None, late_ms)


def _unheard_of_parents(case: Case) -> Iterator[str]:
    """Yield children that did not apply their parent's stop in time, counted after the time in
    which the parent sends its stored message. Exceptions: executions that were in quarantine, and
    tasks that crash their workers.
    """
    evidence = case.schedule
    if evidence.scenario.kills or evidence.is_endless:
        return
    written = written_ms(evidence)
    found = {(one.tenant, one.run): one for one in case.histories}
    for history in case.histories:
        told = history.state.parent
        parent = None if told is None else found.get((history.tenant, told["run"]))
        family = (history,) if parent is None else (history, parent)
        if parent is not None and not any(_was_in_quarantine(evidence, one) for one in family):
            late_ms = sum(_late_ms_max(evidence, one.run) for one in family)
            yield from _heard_late(case, history, written, PARENT, late_ms)


def _heard_late(
    case: Case,
    history: StoredHistory,
    written: Mapping[tuple[str, int], int],
    kind: str | None,
    late_ms: int,
) -> Iterator[str]:
    """Yield the stops of that kind that were not heard of for so long."""
    evidence = case.schedule
    for item in _controls(case, history, kind):
        control = str(item["sk"]).removeprefix(keys.CONTROL_PREFIX)
        at_ms = evidence.stored[str(item["pk"]), str(item["sk"])]
        latest_ms = max(at_ms, evidence.faults_end_ms, _begun_ms(history)) + late_ms
        events = _since_redriven(history, written, at_ms)
        heard_ms = _heard_ms(events, control, is_now="now" in item)
        if heard_ms > latest_ms:
            whose = "the stop" if kind is None else f"the stop of its {kind},"
            yield f"{history.run}: {whose} {control} was stored at {at_ms}, heard of at {heard_ms}"


def _since_redriven(
    history: StoredHistory, written: Mapping[tuple[str, int], int], at_ms: int
) -> list[Event]:
    """Return the events since the last redrive before that time; an earlier end is no
    longer valid.
    """
    found: list[Event] = []
    for record in history.records:
        is_before = written.get((history.run, record.sequence), record.at_ms) <= at_ms
        if is_before and any(event.type == "ExecutionRedriven" for event in record.events):
            found = []
        found += record.events
    return found


def _not_redriven(case: Case) -> Iterator[str]:
    """Yield accepted redrives that were not carried out in time, if they were for the end in force
    when they were stored: then that end is no longer the last record. Exceptions: a redrive whose
    message vanished may never be read, and where tasks crash their workers the faults never end.
    """
    evidence = case.schedule
    if evidence.scenario.kills or evidence.is_endless:
        return
    found = {(one.tenant, one.run): one for one in case.histories}
    written = written_ms(evidence)
    for told in evidence.told:
        history = found.get((told.tenant, str(told.run)))
        if told.what != "redrive" or told.refused is not None or history is None:
            continue
        if history.run in evidence.lost or _was_in_quarantine(evidence, history):
            continue
        latest_ms = max(told.at_ms, evidence.faults_end_ms) + _late_ms_max(evidence, history.run)
        for item in _controls(case, history, REDRIVE):
            at_ms = evidence.stored[str(item["pk"]), str(item["sk"])]
            if not told.asked_ms <= at_ms <= told.at_ms:
                continue  # An earlier request has stored it, but its answer was lost
            control = str(item["sk"]).removeprefix(keys.CONTROL_PREFIX)
            redriven_ms = _redriven_ms(history, written, control, at_ms)
            if redriven_ms is not None and min(redriven_ms, evidence.ended_ms) > latest_ms:
                yield (
                    f"{history.run}: redrive {control} was accepted at {told.at_ms}, and is not"
                    f" carried out by {latest_ms}"
                )


def _redriven_ms(
    history: StoredHistory, written: Mapping[tuple[str, int], int], control: str, at_ms: int
) -> float | None:
    """Return the time at which the first record after its end was written. None when it need not
    continue: it runs, has succeeded, has undone its work, or the redrive's id is older than the end
    or the stop.
    """
    moments = [written.get((history.run, one.sequence), one.at_ms) for one in history.records]
    there = sum(one <= at_ms for one in moments)
    if not there:
        return None
    state = history.states[there - 1]
    if not state.resting or state.is_undone or state.stopped_ms is None:
        return None
    if control <= state.last_control or control < f"{state.stopped_ms:015d}":
        return None
    return next(iter(moments[there:]), inf)


def _controls(case: Case, history: StoredHistory, kind: str | None) -> list[Item]:
    """Return the control messages of that kind; a stop has no kind."""
    inbox = keys.inbox(history.tenant, history.run)
    items = case.services.perform(Query(tables.MAIL, inbox, begins_with=keys.CONTROL_PREFIX))
    return [item for item in items if item.get("kind") == kind]


def _late_ms_max(evidence: Evidence, run: str) -> int:
    return stuck_ms_max(evidence, run) + 2 * evidence.swarm.skew_ms


def _begun_ms(history: StoredHistory) -> int:
    return history.records[0].at_ms


def _heard_ms(events: Sequence[Event], control: str, *, is_now: bool) -> int:
    """Return the time at which it, or an event that makes it void, was written: an end, or an equal
    stop.
    """
    for event in events:
        is_heard = event.holdfast.get("control", "") >= control
        is_obeyed = not is_now and _is_asked_for(event.holdfast.get("stopping"))
        if is_heard or is_obeyed or event.type in TERMINAL_EVENTS:
            return event.at_ms
    return events[-1].at_ms


def _deserted(case: Case) -> Iterator[str]:
    """Check that a child whose parent has stopped waiting gets its stop within the stated time."""
    for history in case.histories:
        if any(_calls(event) for event in history.events):
            program = program_of(case, history)
            if program is not None:
                for text in _Deserted(program, case.schedule, history).read(history.events):
                    yield f"{history.run}: {text}"


def _calls(event: Event) -> bool:
    is_own = event.details.get("resourceType") == "holdfast"
    return is_own and str(event.details["resource"]).startswith("workflow:")


class _Deserted(HistoryLines):
    """`since_ms`: the time at which the parent stopped waiting for a child that had not ended."""

    def __init__(self, program: Program, evidence: Evidence, history: StoredHistory) -> None:
        super().__init__(program)
        # An execution whose start was lost may begin after its deadlines. Their events have their
        # own times, but nothing could stop a child before the log began.
        self.able_ms = max(evidence.faults_end_ms, _begun_ms(history))
        self.late_ms = _late_ms_max(evidence, history.run)
        self.waits: dict[str, tuple[int, int]] = {}
        self.since_ms: dict[tuple[int, int], int] = {}

    def on_event(self, event: Event, frame: str) -> Iterator[str]:
        wait = self.waits.get(frame)
        for gone in [line for line in self.waits if line and line not in self.lines]:
            self.since_ms[self.waits.pop(gone)] = event.at_ms
        if event.type == "ExecutionForked":
            # The children of the copied events are those of the origin, which stops them itself.
            self.waits.clear()
            self.since_ms.clear()
        elif event.type == "ChildrenStopped":
            for entry, number in event.holdfast["children"]:
                yield from self._told((entry, number), event)
        elif event.type in TERMINAL_EVENTS:
            for child in list(self.since_ms):
                yield from self._told(child, event)
        elif event.type == "TaskScheduled" and _calls(event):
            self.waits[frame] = (event.holdfast["entry"], event.holdfast["attempt"])
        elif wait is not None and event.type in {"TaskSucceeded", "TaskFailed"}:
            del self.waits[frame]
        elif wait is not None and event.type in {"TaskTimedOut", "UndoStarted", "DeadlinePassed"}:
            self.since_ms[self.waits.pop(frame)] = event.at_ms

    def _told(self, child: tuple[int, int], event: Event) -> Iterator[str]:
        since_ms = max(self.since_ms.pop(child, event.at_ms), self.able_ms)
        if event.at_ms > since_ms + self.late_ms:
            yield f"no parent waits for child {child} since {since_ms}: it is told at {event.at_ms}"


def _left_running(case: Case) -> Iterator[str]:
    """Yield children that still run after the end of their parent and the stated time, without a
    stop. Exceptions: tasks that crash their workers, because their faults never end, and
    quarantined executions, which wait for a person.
    """
    evidence = case.schedule
    if evidence.scenario.kills or evidence.is_endless:
        return
    written = written_ms(evidence)
    ends = {(one.tenant, one.run): list(_ends_of(one, written)) for one in case.histories}
    for history in case.histories:
        if _was_in_quarantine(evidence, history):
            continue
        for ended_ms, state in ends[history.tenant, history.run]:
            latest_ms = max(ended_ms, evidence.faults_end_ms)
            latest_ms += _late_ms_max(evidence, history.run)
            for entry, number in abandoned(state):
                child = child_run(history.run, entry, number)
                stop = dispatches.stop(history.tenant, child)
                over_ms = [at_ms for at_ms, _ in ends.get((history.tenant, child), ())]
                over_ms += _told_ms(evidence, history, entry, number)
                over_ms.append(evidence.dispatches.first_ms.get(stop, evidence.ended_ms))
                if min(over_ms) > latest_ms:
                    yield (
                        f"{history.run} ended at {ended_ms}, and {child} ran on: it was stopped,"
                        f" or over, at {min(over_ms)}"
                    )


def _told_ms(evidence: Evidence, history: StoredHistory, entry: int, number: int) -> Iterator[int]:
    """Yield the time at which the child stored its end for its parent: TTL may have deleted its own
    log.
    """
    inbox = keys.inbox(history.tenant, history.run)
    for key in (notice_key(entry, number), keys.answer(entry, number)):
        if (inbox, key) in evidence.stored:
            yield evidence.stored[inbox, key]


def _ends_of(
    history: StoredHistory, written: Mapping[tuple[str, int], int]
) -> Iterator[tuple[int, Execution]]:
    """Yield each end that the execution has had, and the time at which the log recorded it."""
    for record, state in zip(history.records, history.states, strict=True):
        if state.is_ended:
            yield written.get((history.run, record.sequence), record.at_ms), state


def _was_in_quarantine(evidence: Evidence, history: StoredHistory) -> bool:
    place = (keys.QUARANTINE, keys.execution(history.tenant, history.run))
    return place in evidence.stored


def as_the_reference_says(case: Case) -> Iterator[str]:
    """Check that the engine's result of an execution equals that of the reference interpreter."""
    scenario = case.schedule.scenario
    rulings = rulings_of(case.histories)
    for history in case.histories:
        if history.state.workflow == BULK_WORKFLOW:
            continue  # I26 compares its report with the executions
        try:
            expected = interpreter.expected(scenario, rulings[history.run])
        except (interpreter.Undecided, interpreter.Contradiction) as error:
            yield f"{history.run}: {type(error).__name__}: {error}"
            continue
        found = ended(history.events)
        if expected is not None and expected != found:
            yield f"{history.run}: is {found}, and should be {expected}"
