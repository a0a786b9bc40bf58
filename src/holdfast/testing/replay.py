"""Replays a recorded history with today's code: would this code have done the same?

The history contains what came from outside: results, events, answers, timers, stops. `replay` gives
these to the workflow as it is compiled now, in the recorded order. After each of them it compares
what the two executions wait for:

    recorded     reserve ─ charge ─ ship        the fold of the recorded events
    today        reserve ─ charge ─ gift ─ …    the core, with the recorded results
                                    ▲
                                    the first step that differs

Pure functions are part of the code, so today's ones are called. Everything else comes from the
history: no task runs.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from holdfast.api.library import library_task
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.asl.parsing.parse import parse_definition
from holdfast.asl.program import Program
from holdfast.asl.resources import AGAIN, is_request
from holdfast.compiler.compile import compile_workflow
from holdfast.core.advance import advance
from holdfast.core.apply.apply import apply
from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.core.facts import (
    DecisionInputs,
    EventReceived,
    Fact,
    FailedWith,
    RedriveRequested,
    Renewed,
    SkipRequested,
    Started,
    StopRequested,
    Submitted,
    Succeeded,
    Tick,
    TimedOut,
)
from holdfast.core.later import waiting_for
from holdfast.core.state import ROOT, Attempt, Awaiting, Delay, Execution, Frame, Timer
from holdfast.core.waits import has_more
from holdfast.limits import CLOCK_ERROR_MS
from holdfast.sealed import hidden
from holdfast.testing.compare import Difference, canonical
from holdfast.testing.compiled import lanes_of, pure_result
from holdfast.testing.definitions import program_of
from holdfast.testing.direct import DRAWN
from holdfast.testing.outcomes import ScriptError
from holdfast.testing.places import RunPath

History: TypeAlias = Sequence[Mapping[str, Any]]
#: A history, a line of an export, or the path of a file that contains one of them.
Recorded: TypeAlias = History | Mapping[str, Any] | str | Path

#: The fields of an event's details that a history shows as JSON text.
_TEXTS: Final = ("input", "output", "parameters")
#: A worker fires a timer only when its time has passed by this much, because the clocks of two
#: workers may differ. The replay follows the recorded history, in which the timer has fired, so it
#: moves the timer's time back by this much. Otherwise the timer would not fire, and the replay
#: would report a difference that does not exist.
_EARLY_MS: Final = 2 * CLOCK_ERROR_MS
#: How far the time of a timer may differ between the history and the replay. The replay uses the
#: time of the recorded event, but the worker set the timer by its own clock a little later.
_TIMER_SLACK_MS: Final = 2_000
_FOR_EVER_MS: Final = 1 << 62
_SHOWN_CHARACTERS: Final = 200
_EVENT_ID: Final = re.compile(r"event id #\d+")


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result for a history that today's code follows. `steps` are the names of the compared
    calls; `status` is that of the recorded execution.
    """

    steps: list[str]
    status: str


def replay(workflow: Workflow[..., Any], history: Recorded, /) -> Replayed:
    """Replay a history from `Client.history` or `holdfast history --json`, a line of `holdfast
    export`, or the JSON file of one of them.

    Raises Difference, which names the first step that today's code would do differently. Raises
    ScriptError for a history that cannot be replayed.
    """
    events = [_event(shown) for shown in _read(history)]
    if not events or events[0].type != "ExecutionStarted":
        raise ScriptError("the history does not begin with ExecutionStarted: it is not complete")
    if any(event.type == "ExecutionForked" for event in events):
        raise ScriptError("a fork cannot be replayed: replay the history of its origin")
    name = events[0].holdfast.get("workflow")
    if name != workflow.name:
        raise ScriptError(f"the history is of {name}, and not of {workflow.name}")
    return _Replay(workflow, _first_program(workflow, events[0])).run(events)


def _first_program(workflow: Workflow[..., Any], started: Event) -> Program:
    """Return the program of the first round. A later start waits first, by a built-in definition,
    and then goes on as new with the workflow's own.
    """
    waits, hash_ = waiting_for(AGAIN)
    is_later = started.holdfast.get("definition") == hash_
    return parse_definition(waits) if is_later else program_of(workflow)


def _read(history: Recorded) -> History:
    found: Any = history
    if isinstance(history, str | Path):
        found = json.loads(Path(history).read_text(encoding="utf-8"))
    if isinstance(found, Mapping):
        found = json.loads(found["history"])
    events: History = found
    return events


def _event(shown: Mapping[str, Any]) -> Event:
    """Return the event of the core that a history shows."""
    if "omitted" in shown:
        raise ScriptError(f"the {shown['type']} in the history is without its large values")
    details: dict[str, Any] = {}
    for key, part in shown.items():
        if key.endswith("EventDetails"):
            details = {name: _value(name, value) for name, value in part.items()}
    at = datetime.fromisoformat(shown["timestamp"])
    number, previous = shown.get("id", 0), shown.get("previousEventId", 0)
    at_ms = round(at.timestamp() * 1_000)
    return Event(shown["type"], number, previous, at_ms, details, dict(shown.get("holdfast", {})))


def _value(name: str, value: Any) -> Any:
    if name == "assignedVariables":
        return {variable: json.loads(text) for variable, text in value.items()}
    return json.loads(value) if name in _TEXTS and isinstance(value, str) else value


# -- open waits ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """One open wait of a line of control. `due_ms` is that of a timer."""

    kind: str
    name: str
    arguments: Any
    attempt: int
    state: str
    due_ms: int = 0

    def is_as(self, other: _Call) -> bool:
        mine = self.kind, self.name, _compared(self.arguments), self.attempt
        others = other.kind, other.name, _compared(other.arguments), other.attempt
        return mine == others and abs(self.due_ms - other.due_ms) <= _TIMER_SLACK_MS

    def __str__(self) -> str:
        number = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        if self.kind in {"sleep", "retry"}:
            return f"{self.kind} until {datetime.fromtimestamp(self.due_ms / 1_000).astimezone()}"
        shown = json.dumps(hidden(self.arguments), ensure_ascii=False)[:_SHOWN_CHARACTERS]
        return f"{self.kind} {self.name} {shown}{number}"


def _compared(arguments: Any) -> str:
    """Return the arguments as text. The text of an error may name an event by its number, and a
    skipped function leaves out two events.
    """
    return _EVENT_ID.sub("event id", canonical(hidden(arguments)))


def _calls(state: Execution) -> dict[RunPath, _Call]:
    """Return the open calls by their lines. Pure functions run in both executions and do not
    count.
    """
    if state.is_ended:
        return {}
    found = {}
    for frame in state.frames.values():
        call = _call(frame)
        if call is not None:
            found[lanes_of(state, frame)] = call
    return found


def _call(frame: Frame) -> _Call | None:
    match frame.waiting:
        case Attempt(kind="pure"):
            return None
        case Attempt() | Awaiting() as waiting if is_request(waiting.kind, waiting.target):
            given: Any = waiting.arguments
            return _Call("request", given["name"], given, waiting.attempt, frame.position)
        case Attempt() as waiting:
            kind, _, name = f"task:{waiting.target}".rpartition(":")
            kind = kind.removeprefix("task:") or "task"
            return _Call(kind, name, waiting.arguments, waiting.attempt, frame.position)
        case Awaiting(kind="event") as waiting:
            given = waiting.arguments
            return _Call("event", waiting.event_name, given, 1, frame.position)
        case Awaiting(kind="ask") as waiting:
            return _Call("ask", waiting.text("title"), waiting.arguments, 1, frame.position)
        case Awaiting() as waiting:
            # A called workflow is an `Attempt` before its start and an `Awaiting` after it. Both
            # must give the same call, so take kind and name from the target here, too.
            kind, _, name = (waiting.target or f"{waiting.kind}:").rpartition(":")
            return _Call(kind, name, waiting.arguments, waiting.attempt, frame.position)
        case Timer(_, due_ms):
            return _Call("sleep", "", None, 1, frame.position, due_ms)
        case Delay():
            return _Call("retry", "", None, 1, frame.position)
        case _:
            return None


# -- the replay ------------------------------------------------------------------------------------


@dataclass
class _Replay:
    """One replay. `recorded` is the fold of the events so far, `state` the execution of today's
    code.
    """

    workflow: Workflow[..., Any]
    program: Program
    recorded: Execution | None = None
    state: Execution | None = None
    now_ms: int = 0
    steps: list[str] = field(default_factory=list)
    _seen: set[tuple[RunPath, int]] = field(default_factory=set)

    def run(self, events: Sequence[Event]) -> Replayed:
        for event in events:
            self.now_ms = max(self.now_ms, event.at_ms)
            fact = None
            if self._is_from_outside(event):
                self._compare()
                fact = self._fact(event)
            self.recorded = apply(self.recorded, event)
            if fact is not None:
                self._offer(fact)
        self._compare()
        assert self.recorded is not None
        self._compare_ends(self.recorded)
        return Replayed(self.steps, self.recorded.status)

    # -- today's execution -------------------------------------------------------------------------

    def _offer(self, *given: Fact) -> None:
        facts: list[Fact] = [*given]
        while facts or (self.state is not None and has_more(self.state)):
            step = advance(self.program, self.state, facts, self._moment())
            self.state = step.state
            facts = [] if has_more(self.state) else self._of_pure_functions(self.state)

    def _of_pure_functions(self, state: Execution) -> list[Fact]:
        waiting = (frame.waiting for frame in state.frames.values())
        attempts = [one for one in waiting if isinstance(one, Attempt) and one.kind == "pure"]
        return [
            pure_result(attempt, self._pure_function(attempt.target), self.now_ms)
            for attempt in attempts
        ]

    def _pure_function(self, name: str) -> Task[..., Any]:
        found = library_task(name)
        modules = [sys.modules[self.workflow.function.__module__], *sys.modules.values()]
        for module in modules if found is None else ():
            one = vars(module).get(name)
            if isinstance(one, Task) and one.is_pure and one.name == name:
                return one
        if found is None:
            raise ScriptError(f"the pure function {name} is in no imported module: import it")
        return found

    def _moment(self) -> DecisionInputs:
        return DecisionInputs(
            now_ms=self.now_ms,
            draw=lambda: DRAWN,
            claim=lambda _: None,
            clock_error_ms=CLOCK_ERROR_MS,
            token=lambda entry, attempt: f"token {entry}.{attempt}",
        )

    # -- facts from outside ------------------------------------------------------------------------

    def _is_from_outside(self, event: Event) -> bool:
        """Return True for an event that the core cannot compute from its state."""
        waiting = None if (place := self._place(event)) is None else place.waiting
        if event.type in _RESULTS:
            return isinstance(waiting, Attempt | Awaiting) and waiting.kind != "pure"
        if event.type == "WaitStateExited":
            return isinstance(waiting, Timer)
        if event.type == "StepSkipped" and isinstance(waiting, Attempt) and waiting.kind == "pure":
            # Pass over this skip. Today's execution computes pure functions itself and has gone on,
            # so the skip would be applied to the next step. If the operator gave another result, it
            # shows at the next call.
            return False
        if event.type in _DEADLINES:
            return self._is_deadline_open(event)
        return event.type in _OUTSIDE or _ends_delay(event, waiting)

    def _is_deadline_open(self, event: Event) -> bool:
        """Return True for the first event of a deadline that passes. In a block with undo steps it
        is `Cancelled`; `DeadlinePassed` follows the undo, and today's execution computes it.
        """
        frame, number = self._frame(event), _deadline_of(event)
        if frame is None or frame.cancelled is not None:
            return False
        return any(due.number == number for due in frame.deadlines)

    def _place(self, event: Event) -> Frame | None:
        """Return the recorded frame of the event."""
        if self.recorded is None:
            return None
        return self.recorded.frames.get(event.holdfast.get("frame", ROOT))

    def _frame(self, event: Event) -> Frame | None:
        """Return the frame of today's execution on the line of the event."""
        place, state = self._place(event), self.state
        if place is None or state is None or self.recorded is None:
            return None
        path = lanes_of(self.recorded, place)
        frames = (frame for frame in state.frames.values() if lanes_of(state, frame) == path)
        return next(frames, None)

    def _fact(self, event: Event) -> Fact | None:
        frame = self._frame(event)
        if event.type == "ExecutionStarted":
            data = event.details["input"]
            run, name = str(event.holdfast["run"]), event.holdfast.get("name")
            return Started(run, name, self.workflow.name, data, event.at_ms)
        if event.type in _RESULTS:
            return None if frame is None else _result(frame, event)
        found = self._of_time_or_person(event, frame)
        return self._fire(frame, Delay) if found is None else found

    def _of_time_or_person(self, event: Event, frame: Frame | None) -> Fact | None:
        match event.type:
            case "WaitStateExited":
                return self._fire(frame, Timer)
            case "DeadlinePassed" | "Cancelled" if frame is not None:
                return self._pass_deadline(frame, _deadline_of(event))
            case "Stopping" | "ExecutionTimedOut" | "ExecutionAborted":
                return self._stop(event)
            case "ExecutionRedriven":
                return RedriveRequested(str(event.holdfast["control"]))
            case "StepSkipped" if frame is not None:
                control, output = str(event.holdfast["control"]), event.details["output"]
                return SkipRequested(control, frame.id, frame.entered_event, output, "", "")
            case "ContinuedAsNew" if frame is not None:
                waiting: Any = frame.waiting
                self.program = program_of(self.workflow)
                data = event.holdfast["input"]
                return Renewed(waiting.entry, waiting.attempt, self.program, data)
            case _:
                return None

    def _stop(self, event: Event) -> Fact | None:
        assert self.state is not None
        if self.state.is_ended or self.state.stopping is not None:
            return None
        stopping = event.holdfast.get("stopping", {})
        if event.type == "ExecutionTimedOut" or stopping.get("status") == "TIMED_OUT":
            self.state = self.state._replace(due_ms=self.now_ms - _EARLY_MS)
            return Tick()
        control = str(event.holdfast.get("control", "0" * 15))
        return StopRequested(control, stopping.get("error"), stopping.get("cause"))

    def _fire(self, frame: Frame | None, kind: type[Timer | Delay]) -> Fact | None:
        if frame is None or not isinstance(frame.waiting, kind):
            return None
        assert self.state is not None
        waiting = replace(frame.waiting, due_ms=self.now_ms - _EARLY_MS)
        self.state = self.state.with_frame(frame._replace(waiting=waiting))
        return Tick()

    def _pass_deadline(self, frame: Frame, number: int | None) -> Fact:
        assert self.state is not None
        early = self.now_ms - _EARLY_MS
        deadlines = tuple(
            one._replace(due_ms=early) if one.number == number else one for one in frame.deadlines
        )
        self.state = self.state.with_frame(frame._replace(deadlines=deadlines))
        return Tick()

    # -- comparing ---------------------------------------------------------------------------------

    def _compare(self) -> None:
        recorded, state = self.recorded, self.state
        if recorded is None or state is None or not _is_at_rest(recorded):
            return
        theirs, ours = _calls(recorded), _calls(state)
        for path in sorted({*theirs, *ours}, key=str):
            their, our = theirs.get(path), ours.get(path)
            if their is None or our is None or not their.is_as(our):
                raise Difference(self._difference(path, their, our))
        for path, entry, call in _opened(recorded):
            if (path, entry) not in self._seen:
                self._seen.add((path, entry))
                self.steps.append(call.name or call.kind)

    def _difference(self, path: RunPath, their: _Call | None, our: _Call | None) -> str:
        where = f" in branch {'.'.join(map(str, path))}" if path else ""
        after = f"after {', '.join(self.steps[-3:])}" if self.steps else "at its first step"
        return (
            f"{self.workflow.name} would not do what was recorded, {after}{where}:\n"
            f"  recorded: {self._shown(self.recorded, their)}\n"
            f"  today:    {self._shown(self.state, our)}{self._source(our)}"
        )

    def _shown(self, state: Execution | None, call: _Call | None) -> str:
        if call is not None:
            return str(call)
        assert state is not None
        return _ended(state) if state.is_ended else "no call"

    def _source(self, call: _Call | None) -> str:
        if call is None:
            return ""
        sources = json.loads(compile_workflow(self.workflow).map_text).get("sources", {})
        place = sources.get(call.state)
        return "" if place is None else f"  ({place['file']}:{place['line']}: {place['text']})"

    def _compare_ends(self, recorded: Execution) -> None:
        assert self.state is not None
        if not recorded.is_ended and not self.state.is_ended:
            return
        theirs, ours = _end(recorded), _end(self.state)
        if theirs != ours:
            raise Difference(self._difference((), None, None))


def _result(frame: Frame, event: Event) -> Fact | None:
    waiting = frame.waiting
    if not isinstance(waiting, Attempt | Awaiting):
        return None
    ticket, details = (waiting.entry, waiting.attempt), event.details
    match event.type:
        case "TaskFailed" | "TaskSucceeded" if "event" in event.holdfast:
            event_id = str(event.holdfast["event"])
            received = waiting.entry, event_id, details.get("output"), _FOR_EVER_MS
            error, cause = details.get("error"), details.get("cause")
            return EventReceived(*received, error=error, cause=cause)
        case "TaskFailed":
            return FailedWith(*ticket, details.get("error"), details.get("cause"))
        case "TaskTimedOut":
            return TimedOut(*ticket)
        case "TaskSubmitted":
            return Submitted(*ticket, details.get("output"))
        case _:
            cached = event.holdfast.get("cached")
            return Succeeded(*ticket, details.get("output"), cached=cached)


def _opened(state: Execution) -> Iterator[tuple[RunPath, int, _Call]]:
    for frame in state.frames.values():
        call, entry = _call(frame), getattr(frame.waiting, "entry", None)
        if call is not None and entry is not None:
            yield lanes_of(state, frame), entry, call


def _is_at_rest(state: Execution) -> bool:
    """Return False while a pure function runs: today's execution has its result at once."""
    waiting = (frame.waiting for frame in state.frames.values())
    runs_pure = any(isinstance(one, Attempt) and one.kind == "pure" for one in waiting)
    return not runs_pure and not has_more(state)


def _end(state: Execution) -> tuple[object, ...]:
    return state.status, canonical(hidden(state.output)), state.error


def _ended(state: Execution) -> str:
    if state.status == "SUCCEEDED":
        shown = json.dumps(hidden(state.output), ensure_ascii=False)[:_SHOWN_CHARACTERS]
        return f"the end: SUCCEEDED with {shown}"
    return f"the end: {state.status} {state.error or ''}".rstrip()


#: The events that have the results of calls. Those of pure functions do not come from outside,
#: because the core computes them.
_RESULTS: Final = frozenset({"TaskSucceeded", "TaskFailed", "TaskTimedOut", "TaskSubmitted"})
#: The other events that come from outside. Before each of them the recorded execution and today's
#: execution must wait for the same things.
_OUTSIDE: Final = frozenset(
    {"ExecutionStarted", "ExecutionTimedOut", "ExecutionAborted", "ExecutionRedriven"}
    | {"Stopping", "StepSkipped", "ContinuedAsNew"}
)
#: The events of a block whose time limit has passed.
_DEADLINES: Final = frozenset({"DeadlinePassed", "Cancelled"})


def _deadline_of(event: Event) -> int | None:
    """Return the number of the deadline that has passed; None for another cancellation."""
    number: int | None
    if event.type == "DeadlinePassed":
        number = event.holdfast["over"][0]
    else:
        number = event.holdfast["reason"].get("deadline")
    return number


def _ends_delay(event: Event, waiting: object) -> bool:
    """Return True for the first event after the delay of a retried state. The end of such a delay
    has no event of its own.
    """
    is_step = event.id > 0 and not event.type.endswith("Aborted")
    return isinstance(waiting, Delay) and is_step and event.type not in TERMINAL_EVENTS
