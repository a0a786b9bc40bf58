"""Forks, skips and replays of generated programs: the same results lead to the same end.

The compiled program runs on the core. The outcome of a call is a function of its name and its
arguments, so a fork that makes the same call gets the same outcome. A call takes no time: only
timers move the clock.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from holdfast.api.library import LOG, library_task
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.asl.program import Json
from holdfast.asl.resources import AGAIN, CHILD_WORKFLOW, is_later, started_by
from holdfast.compiler.compile import compile_workflow
from holdfast.compiler.diagnostics import CompileErrors
from holdfast.core.advance import advance
from holdfast.core.events import Event
from holdfast.core.facts import (
    DecisionInputs,
    EventReceived,
    Fact,
    FailedWith,
    Forked,
    SkipRequested,
    Started,
    Submitted,
    Succeeded,
    Tick,
    TimedOut,
)
from holdfast.core.forking import begin_of, entries
from holdfast.core.state import Attempt, Awaiting, Delay, Execution, Frame, Timer
from holdfast.core.waits import has_more
from holdfast.limits import CLOCK_ERROR_MS, REQUEST_SUFFIX
from holdfast.runtime.commands import presentation
from holdfast.testing import replay
from holdfast.testing.definitions import program_of
from holdfast.testing.direct import DRAWN
from holdfast.testing.ends import end_of_error
from holdfast.testing.secrecy import SEALS
from tests.differential import baskets, shop
from tests.differential.choices import Choices
from tests.differential.programs import HEADER, program
from tests.differential.runs import _RESULTS, INPUTS, TooLong, loaded

START_MS: Final = 1_767_225_600_000
_FACTS_MAX: Final = 600
#: A skip leaves out two events, so that those after it have other numbers.
_EVENT_ID: Final = re.compile(r"event id #\d+")
_ERRORS: Final = (shop.Small, shop.Problem, shop.Other, RuntimeError)
_FOR_EVER_MS: Final = 1 << 62
#: The time of an execution and of its blocks begins anew in a fork: the end may be another one.
_TIMED: Final = {"ExecutionTimedOut", "DeadlinePassed"}


class Differs(AssertionError):  # noqa: N818
    """A fork or a skip has another end than its origin."""


@dataclass
class CoreRun:
    """One execution on the core. `skipped`: the number of the call whose result an operator gives,
    None for none. `errors`: the calls in a hundred that fail.
    """

    workflow: Workflow[..., Any]
    source_map: dict[str, Any]
    errors: int
    now_ms: int = START_MS
    skipped: int | None = None
    calls: int = 0
    events: list[Event] = field(default_factory=list)
    state: Execution | None = None

    def run(self, first: Fact) -> tuple[object, ...]:
        """Return the end: status, output, error, cause."""
        facts: list[Fact] = [first]
        for _ in range(_FACTS_MAX):
            step = advance(program_of(self.workflow), self.state, facts, self._moment())
            self.state = step.state
            self.events += step.events
            if self.state.is_ended:
                state = self.state
                cause = _EVENT_ID.sub("event", state.cause or "")
                return state.status, state.output, state.error, cause
            facts = [] if has_more(self.state) else [self._next(self.state)]
        raise TooLong

    def _moment(self) -> DecisionInputs:
        return DecisionInputs(
            now_ms=self.now_ms,
            draw=lambda: DRAWN,
            claim=lambda _: None,
            clock_error_ms=CLOCK_ERROR_MS,
            token=lambda entry, attempt: f"token {entry}.{attempt}",
        )

    def _next(self, state: Execution) -> Fact:
        for frame in state.frames.values():
            fact = self._answer(state, frame)
            if fact is not None:
                return fact
        self.now_ms = max(self.now_ms, min(_dues(state, self.now_ms)) + 2 * CLOCK_ERROR_MS)
        return Tick()

    # -- calls -------------------------------------------------------------------------------------

    def _answer(self, state: Execution, frame: Frame) -> Fact | None:
        waiting = frame.waiting
        if not isinstance(waiting, Attempt | Awaiting):
            return None
        ticket = waiting.entry, waiting.attempt
        if isinstance(waiting, Attempt) and waiting.due_ms > self.now_ms:
            return None
        if isinstance(waiting, Attempt) and waiting.target.startswith(CHILD_WORKFLOW):
            return Submitted(*ticket, None)
        fact = self._outcome(state, waiting)
        if isinstance(fact, Succeeded | EventReceived):
            self.calls += 1
            if self.calls == self.skipped:
                output = fact.output if isinstance(fact, Succeeded) else fact.data
                place = frame.id, frame.entered_event
                return SkipRequested("1" * 15, *place, output, "drawn", "operator")
        return fact

    def _outcome(self, state: Execution, waiting: Attempt | Awaiting) -> Fact | None:
        ticket = waiting.entry, waiting.attempt
        name, arguments = waiting.target, waiting.arguments
        draw = _draws([name, waiting.kind, arguments])
        if name.startswith(CHILD_WORKFLOW):
            return self._child(waiting)
        if isinstance(waiting, Awaiting):
            return self._of_wait(state, waiting, draw)
        if waiting.kind == "command":
            return self._command(waiting)
        if waiting.kind == "pure":
            return _called(waiting, self._task(name))
        if waiting.timeout_seconds is not None and next(draw) % 100 < 5:
            return TimedOut(*ticket)
        if next(draw) % 100 < self.errors:
            error = _ERRORS[next(draw) % len(_ERRORS)]
            return FailedWith(*ticket, error.__name__, f"e{next(draw) % 9}")
        return Succeeded(*ticket, self._result(name, draw))

    def _command(self, attempt: Attempt) -> Fact:
        """Return the result of `start`, `send` and others: the id of the started execution, or
        nothing.
        """
        if attempt.target == AGAIN:
            raise TooLong  # it continues as new: there is no end to compare
        has_started = is_later(attempt.target) or started_by(attempt.target) is not None
        started = f"run {attempt.entry}" if has_started else None
        return Succeeded(attempt.entry, attempt.attempt, started)

    def _result(self, name: str, draw: Iterator[int]) -> Any:
        if name in _RESULTS:
            return _RESULTS[name][next(draw) % len(_RESULTS[name])]
        return None if self._task(name).boundary.returns_nothing else next(draw) % 9 - 2

    def _of_wait(self, state: Execution, waiting: Awaiting, draw: Iterator[int]) -> Fact | None:
        if waiting.due_ms is not None and next(draw) % 100 < 15:
            return TimedOut(waiting.entry, waiting.attempt) if self._is_over(waiting) else None
        if waiting.kind == "event":
            data = _value(self.source_map["events"][waiting.event_name], draw)
            if waiting.event_name.endswith(REQUEST_SUFFIX):
                data = ["request", data]
            event_id = f"{state.run} {waiting.entry}"
            return EventReceived(waiting.entry, event_id, data, _FOR_EVER_MS)
        frame = state.frame_of(waiting.entry)
        assert frame is not None
        reference = self.source_map["answers"][frame.position]
        return Succeeded(waiting.entry, waiting.attempt, _value(reference, draw))

    def _is_over(self, waiting: Awaiting) -> bool:
        return waiting.due_ms is not None and waiting.due_ms <= self.now_ms

    def _task(self, name: str) -> Task[..., Any]:
        found = library_task(name)
        task = getattr(shop if hasattr(shop, name) else baskets, name) if found is None else found
        assert isinstance(task, Task)
        return task

    def _child(self, waiting: Attempt | Awaiting) -> Fact:
        """Run the child to its end at once; it has a clock of its own."""
        workflow = getattr(shop, waiting.target.removeprefix(CHILD_WORKFLOW))
        given: Any = waiting.arguments
        child = CoreRun(workflow, _map_of(workflow), self.errors)
        status, output, error, cause = child.run(_started(workflow, given, START_MS))
        ticket = waiting.entry, waiting.attempt
        match status:
            case "SUCCEEDED":
                return Succeeded(*ticket, _json(output))
            case "FAILED":
                return FailedWith(*ticket, str(error), str(cause))
            case _:
                return TimedOut(*ticket)


def _json(value: object) -> Any:
    return value


def _started(workflow: Workflow[..., Any], given: dict[str, Json], now_ms: int) -> Started:
    return Started("run", None, workflow.name, dict(given), now_ms)


def _map_of(workflow: Workflow[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(compile_workflow(workflow).map_text)
    return found


def _draws(subject: Any) -> Iterator[int]:
    """Yield numbers that follow from the subject alone."""
    text = json.dumps(subject, sort_keys=True).encode()
    for number in range(1_000):
        yield int.from_bytes(hashlib.sha256(b"%d %b" % (number, text)).digest()[:4], "big")


def _value(reference: str, draw: Iterator[int]) -> Any:
    match reference:
        case "builtins:int":
            return next(draw) % 5
        case "builtins:bool":
            return bool(next(draw) % 2)
        case "tests.differential.shop:Answer":
            return {"yes": next(draw) % 5 > 0, "note": f"e{next(draw) % 9}"}
        case "tests.differential.shop:Line":
            return INPUTS["line"][next(draw) % len(INPUTS["line"])]
        case "tests.differential.shop:Card | tests.differential.shop:Transfer":
            card = {"kind": "card", "digits": "4242"}
            return [card, {"kind": "transfer", "iban": "DE1", "cents": 0}][next(draw) % 2]
        case "list[tests.differential.shop:Line]":
            return INPUTS["lines"][next(draw) % len(INPUTS["lines"])]
        case _:
            raise AssertionError(reference)


def _called(attempt: Attempt, task: Task[..., Any]) -> Fact:
    ticket = attempt.entry, attempt.attempt
    arguments: Any = attempt.arguments
    if task.name == LOG:
        return Succeeded(*ticket, None)
    try:
        return Succeeded(*ticket, task.call_json(arguments, SEALS))
    except Exception as error:  # noqa: BLE001 - as the worker does
        end = end_of_error(error)
        return FailedWith(*ticket, end.error, end.cause)


def _dues(state: Execution, now_ms: int) -> Iterator[int]:
    if state.due_ms is not None:
        yield state.due_ms
    for frame in state.frames.values():
        yield from (due.due_ms for due in frame.deadlines)
        match frame.waiting:
            case Timer(_, due_ms) | Delay(_, due_ms):
                yield due_ms
            case Attempt(due_ms=due_ms) if due_ms > now_ms:
                yield due_ms
            case Awaiting(due_ms=int(due_ms)):
                yield due_ms


# -- programs --------------------------------------------------------------------------------------


def repeat_steps(choices: Choices, folder: Path, counts: Counter[str]) -> None:
    """Draw a program, run it, fork it at each step of its main line, and skip some of its calls.

    Raises Differs.
    """
    with loaded(folder, HEADER + program(choices, Counter())) as module:
        try:
            source_map = _map_of(module.flow)
        except CompileErrors:
            counts["refused"] += 1
            return
        parameters = inspect.signature(module.flow.function).parameters
        given = {name: choices.pick(INPUTS[name]) for name in parameters}
        origin = CoreRun(module.flow, source_map, choices.pick([0, 5, 15]))
        try:
            end = origin.run(_started(module.flow, given, START_MS))
        except TooLong:
            counts["given up"] += 1
            return
        counts["programs"] += 1
        counts[f"ended {end[0]}"] += 1
        replay(module.flow, [presentation._event(event) for event in origin.events])
        _fork_everywhere(origin, end, counts)
        for _ in range(min(3, origin.calls)):
            _skip(origin, given, end, 1 + choices.below(origin.calls))
            counts["skips"] += 1


def _fork_everywhere(origin: CoreRun, end: tuple[object, ...], counts: Counter[str]) -> None:
    events = origin.events
    if any(event.type in _TIMED for event in events):
        counts["timed"] += 1
        return
    for step, place in entries(events).items():
        if any(event.type == "Cancelled" for event in events[:place]):
            continue  # the step may be one of an undo, which is not forked
        entered = events[place]
        copied = _until(events, entered.id)
        run = CoreRun(origin.workflow, origin.source_map, origin.errors, entered.at_ms)
        started = Started("fork", None, origin.workflow.name, None, entered.at_ms)
        of: Any = {"run": "run", "event": entered.id, "step": step}
        _require(f"the fork at {step}", run.run(Forked(started, copied, of, None, {}, "", "")), end)
        counts["forks"] += 1


def _until(events: Sequence[Event], event_id: int) -> tuple[Event, ...]:
    place = begin_of(events, event_id)
    assert place is not None
    return tuple(events[: place + 1])


def _skip(origin: CoreRun, given: dict[str, Json], end: tuple[object, ...], call: int) -> None:
    run = CoreRun(origin.workflow, origin.source_map, origin.errors, skipped=call)
    found = run.run(_started(origin.workflow, given, START_MS))
    replay(origin.workflow, [presentation._event(event) for event in run.events])
    skips = sum(event.type == "StepSkipped" for event in run.events)
    if skips != 1:
        raise Differs(f"the skip of call {call} was applied {skips} times")
    _require(f"the run with a skip of call {call}", found, end)


def _require(what: str, found: tuple[object, ...], expected: tuple[object, ...]) -> None:
    if found != expected:
        raise Differs(f"{what} ends as {found}, the origin as {expected}")
