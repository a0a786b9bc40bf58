"""What a scenario should come to: an interpreter written apart from the engine's core.

Plain recursion, one line of control at a time, without faults, clock or storage. It shares with the
engine the reading of a machine and its expressions (`holdfast.asl`), and not a line of `core`.

Where time and order decide, it asks a `Ruling`: which attempts ended how, which event was used, in
which order lanes ended, during which visit a block's time ran out. What follows from that is its
own conclusion: outputs, retries, handlers, quorums, undos, what a late line still does. Without a
ruling it goes by the scenario alone, and raises `Undecided` where that does not decide.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from holdfast.asl.jsonata import Moment
from holdfast.asl.parse import read_program
from holdfast.asl.program import (
    Choice,
    Fail,
    Json,
    Map,
    Parallel,
    Pass,
    Program,
    Succeed,
    Task,
    Wait,
)
from holdfast.asl.resources import CHILD_WORKFLOW
from holdfast.asl.template import StateError, Template
from holdfast.asl.timestamps import nanos_of
from holdfast.sim.rulings import Ended, Ending, Path, Ruling, Visit
from holdfast.sim.scenarios import Outcome, Scenario

TIMEOUT: Final = "States.Timeout"
_RUNTIME: Final = "States.Runtime"
#: How an attempt fails without a word from the task: the ruling is taken at its word.
_FATES: Final = frozenset({TIMEOUT, "Holdfast.WorkerLost"})
_SECONDS_MAX: Final = 99_999_999
_LATE: Final[Json] = {"Error": "BlockTimeout", "Cause": ""}
#: Where it starts, its input, and its Map.Item.
_Lane: TypeAlias = tuple[str, Json, Json]
#: The next state, None after the last; and what it gets.
_Move: TypeAlias = tuple[str | None, Json]


class Undecided(Exception):  # noqa: N818  # it is no error: the scenario leaves it open
    """The scenario alone does not say what happens: time or order decides."""


class Contradiction(Exception):  # noqa: N818  # what it tells of is an error of somebody else
    """The ruling tells of something that cannot have happened."""


@dataclass
class Failed(Exception):  # noqa: N818  # as the states call it
    """A state failed. `handled_as`: what handlers are asked for, where it is not what is told.
    `is_attempt`: it is what an attempt came to, and the next one is counted.
    """

    error: str | None
    cause: str | None
    handled_as: str | None = None
    is_attempt: bool = False


@dataclass
class _Line:
    """One line of control. `late`: the blocks that are out of time, while the line is shielded."""

    path: Path
    outer: _Line | None = None
    item: Json = None
    position: str = ""
    input: Json = None
    visit: Visit = field(default_factory=Visit)
    variables: dict[str, Json] = field(default_factory=dict)
    retries: Counter[int] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    endings: int = 0
    openings: Counter[str] = field(default_factory=Counter)
    blocks: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)
    now_ms: int = 0

    def scope(self) -> dict[str, Json]:
        return {**({} if self.outer is None else self.outer.scope()), **self.variables}

    def map_item(self) -> Json:
        if self.item is not None or self.outer is None:
            return self.item
        return self.outer.map_item()


def expected(scenario: Scenario, ruling: Ruling | None = None) -> Ended | None:
    """-> how the execution that the ruling is about ends; without one, that which is started.

    None: it was redriven, about which nothing is said. Raises Undecided, Contradiction.
    """
    if ruling is None:
        return _Interpreter(scenario, scenario.started, None).run(scenario.input)
    return _Interpreter(scenario, ruling.workflow, ruling).run(ruling.input)


@functools.lru_cache(maxsize=256)
def _program(text: str) -> Program:
    return read_program(json.loads(text))


class _Interpreter:
    """Of one execution."""

    def __init__(self, scenario: Scenario, workflow: str, ruling: Ruling | None) -> None:
        self.scenario = scenario
        self.workflow = workflow
        self.ruling = ruling
        self.program = _program(json.dumps(scenario.machines[workflow]))
        self.used: set[str] = set()
        self.input: Json = None

    def run(self, data: Json, start_at: str | None = None) -> Ended | None:
        ruling, program = self.ruling, self.program
        if ruling is None and (program.deadlines or program.timeout_seconds is not None):
            raise Undecided(f"{self.workflow} has deadlines")
        if ruling is not None and (ruling.is_redriven or ruling.imposed is not None):
            return ruling.imposed
        self.input = data
        try:
            output = self._follow(_Line(()), start_at or program.start_at, data)
        except Failed as failure:
            return Ended("FAILED", None, failure.error, failure.cause)
        return Ended("SUCCEEDED", output)

    # -- lines -------------------------------------------------------------------------------------

    def _follow(self, line: _Line, name: str, data: Json) -> Json:
        """-> what the line comes to. Raises Failed."""
        move: _Move = (name, data)
        while True:
            try:
                if line.late and not self._is_inside(line, move[0]):
                    move = self._leave_block(line, self._to_leave(line))
                elif move[0] is None:
                    return move[1]
                else:
                    move = self._visit(line, move[0], move[1])
            except Failed:
                if not line.late:
                    raise
                move = self._leave_block(line, self._to_leave(line))

    def _visit(self, line: _Line, name: str, data: Json) -> _Move:
        number, line.seen[name] = line.seen[name], line.seen[name] + 1
        line.position, line.input, line.endings = name, data, 0
        line.visit = Visit() if self.ruling is None else self._seen(self.ruling, line, number)
        line.now_ms = line.visit.entered_ms
        line.retries = Counter()
        blocks = self.program.deadlines
        line.blocks = [block for block in line.blocks if name in blocks[block].states]
        if line.late and self._is_taken(line):
            return self._unwind(line)
        for number, block in enumerate(blocks):
            if block.begin == name:
                seconds = self._evaluate(line, block.seconds)
                self._seconds(line, seconds, "Seconds", least=1)
                line.blocks.append(number)
        for number in line.visit.passed:
            if number not in line.blocks:
                raise Contradiction(f"the time of block {number} is over, far from it: {name}")
        line.late = sorted({*line.late, *line.visit.passed})  # as the machine has them: inside out
        if line.visit.passed and not self._is_shielded(line):
            return self._unwind(line)
        return self._state(line)

    def _seen(self, ruling: Ruling, line: _Line, number: int) -> Visit:
        visits = ruling.visits.get((line.path, line.position), ())
        if number < len(visits):
            return visits[number]
        raise Contradiction(f"{line.position} in {line.path} was not entered {number + 1} times")

    # -- what is late ------------------------------------------------------------------------------

    def _is_inside(self, line: _Line, name: str | None) -> bool:
        return name in self.program.deadlines[self._to_leave(line)].states

    def _to_leave(self, line: _Line) -> int:
        """The innermost block that is out of time, or one around it that no more shields part."""
        first, *others = line.late
        for other in others:
            if self._shields(line, other) == self._shields(line, first):
                first = other
        return first

    def _shields(self, line: _Line, block: int) -> int:
        """How many shields hold the end of the block back."""
        inside = {self.program.deadlines[block].begin}
        if line.outer is not None:
            inside.add(line.outer.position)
        shields = (*self.program.shielded, *(undo.own for undo in self.program.undos))
        return sum(line.position in one and not one & inside for one in shields)

    def _is_shielded(self, line: _Line) -> bool:
        return self._shields(line, self._to_leave(line)) > 0

    def _is_taken(self, line: _Line) -> bool:
        """A late line stops where an undo of it ends, and at its next step outside."""
        if self._is_shielded(line):
            return False
        ends = {self.program.undos[number].end for number in line.undone}
        return line.position in ends or self._is_step(line.position)

    def _is_step(self, name: str) -> bool:
        match self.program.states[name]:
            case Parallel(branches=[start]):
                return not isinstance(self.program.states[start], Succeed)
            case state:
                return isinstance(state, Task | Wait | Map | Parallel)

    def _unwind(self, line: _Line) -> _Move:
        block = self._to_leave(line)
        within = self.program.deadlines[block].states
        for number, undo in enumerate(self.program.undos):
            is_within = line.position in undo.states and undo.begin in within
            if is_within and number not in line.undone:
                line.undone.add(number)
                if self._assign(line, undo.assign):
                    return undo.begin, line.input
        return self._leave_block(line, block)

    def _leave_block(self, line: _Line, number: int) -> _Move:
        block = self.program.deadlines[number]
        line.late = [one for one in line.late if self._is_around(one, number)]
        line.blocks = [one for one in line.blocks if self._is_around(one, number)]
        line.undone.clear()
        self._assign(line, block.assign)
        if block.next is None:
            raise Failed("BlockTimeout", "")
        return block.next, line.input

    def _is_around(self, outer: int, inner: int) -> bool:
        blocks = self.program.deadlines
        return outer != inner and blocks[inner].begin in blocks[outer].states

    def _assign(self, line: _Line, assign: Template | None) -> bool:
        """False: it cannot be worked out, and nothing is assigned."""
        try:
            line.variables |= self._object(line, assign, errorOutput=_LATE)
        except Failed:
            return False
        return True

    # -- states ------------------------------------------------------------------------------------

    def _state(self, line: _Line) -> _Move:
        match self.program.states[line.position]:
            case Pass() as state:
                extra = {}
                if state.result is not None:
                    extra["result"] = self._evaluate(line, state.result)
                return self._left(line, state, line.input, **extra)
            case Succeed() as state:
                output = state.output
                return None, line.input if output is None else self._evaluate(line, output)
            case Fail() as state:
                texts = [
                    None if text is None else str(self._evaluate(line, text))
                    for text in (state.error, state.cause)
                ]
                raise Failed(texts[0], texts[1])
            case Choice() as state:
                return self._choose(line, state)
            case Wait() as state:
                self._wait(line, state)
                return self._left(line, state, line.input)
            case state:
                return self._work(line, state)

    def _choose(self, line: _Line, state: Choice) -> _Move:
        for rule in state.rules:
            is_true = self._evaluate(line, rule.condition)
            if not isinstance(is_true, bool):
                text = f"Condition has to be a boolean, found {is_true!r:.40}."
                raise self._failure(line, "States.QueryEvaluationError", text)
            if is_true:
                return self._left(line, rule, line.input)
        if state.default is None:
            text = "Failed to transition out of the state. The state does not point to a next state"
            raise self._failure(line, "States.NoChoiceMatched", f"{text}.")
        _, data = self._left(line, state, line.input)
        return state.default, data

    def _wait(self, line: _Line, state: Wait) -> None:
        if state.seconds is not None:
            self._seconds(line, self._evaluate(line, state.seconds), "Seconds")
        if state.timestamp is not None:
            text = self._evaluate(line, state.timestamp)
            if not isinstance(text, str) or nanos_of(text) is None:
                what = "cannot be parsed as an ISO-8601 extended offset date-time format string"
                what = f"The Timestamp field {what}: {text}"
                raise self._failure(line, "States.QueryEvaluationError", what)

    def _left(self, line: _Line, state: Any, default: Json, **extra: Json) -> _Move:
        assigned = self._object(line, state.assign, **extra)
        output = default if state.output is None else self._evaluate(line, state.output, **extra)
        line.variables |= assigned
        return getattr(state, "next", None), output

    def _object(self, line: _Line, template: Template | None, **extra: Json) -> dict[str, Json]:
        value = {} if template is None else self._evaluate(line, template, **extra)
        assert isinstance(value, dict)
        return value

    # -- states that are retried -------------------------------------------------------------------

    def _work(self, line: _Line, state: Task | Parallel | Map) -> _Move:
        attempt = 1
        while True:
            try:
                result = self._result(line, state, attempt)
                return self._left(line, state, result, result=result)
            except Failed as failure:
                if not self._is_retried(line, state, failure):
                    return self._caught(line, state, failure)
                attempt = attempt + 1 if failure.is_attempt else 1

    def _is_retried(self, line: _Line, state: Task | Parallel | Map, failure: Failed) -> bool:
        """By the first retrier that takes the error, if it has a retry left."""
        for number, retrier in enumerate(state.retry):
            if _takes(retrier.errors, failure):
                line.retries[number] += 1
                if line.retries[number] <= retrier.attempts_max:
                    return True
                line.retries[number] -= 1
                return False
        return False

    def _caught(self, line: _Line, state: Task | Parallel | Map, failure: Failed) -> _Move:
        catcher = next((one for one in state.catch if _takes(one.errors, failure)), None)
        if catcher is None:
            raise Failed(failure.error, failure.cause) from None
        cause = "" if failure.error == TIMEOUT and failure.cause is None else failure.cause
        told: Json = {"Error": failure.error, "Cause": cause}
        return self._left(line, catcher, told, errorOutput=told)

    def _result(self, line: _Line, state: Task | Parallel | Map, attempt: int) -> Json:
        match state:
            case Task():
                return self._attempt(line, state, attempt)
            case Parallel():
                data = line.input
                if state.arguments is not None:
                    data = self._evaluate(line, state.arguments)
                return self._lanes(line, state, [(start, data, None) for start in state.branches])
            case Map(run=None):
                items = self._items(line, state)
                lanes = [
                    (state.processor, item, {"Index": index, "Value": item})
                    for index, item in enumerate(items)
                ]
                return self._lanes(line, state, lanes)
            case Map():
                raise Undecided(f"{state.name} is distributed")

    # -- tasks -------------------------------------------------------------------------------------

    def _attempt(self, line: _Line, state: Task, attempt: int) -> Json:
        if line.endings < len(line.visit.endings):
            line.now_ms = line.visit.endings[line.endings].began_ms
        arguments = line.input
        if state.arguments is not None:
            arguments = self._evaluate(line, state.arguments)
        timeout = self._bound(line, state.timeout_seconds, "TimeoutSeconds")
        self._bound(line, state.heartbeat_seconds, "HeartbeatSeconds")
        ending = self._ending(line)
        if ending is not None:
            line.now_ms = ending.ended_ms
            if ending.error in _FATES:
                handled_as = "States.HeartbeatTimeout" if ending.is_heartbeat else None
                raise Failed(ending.error, ending.cause, handled_as, is_attempt=True)
        match state.kind:
            case "event":
                return self._event(arguments, ending, has_timeout=timeout is not None)
            case "ask" | "token":
                return self._came(self.scenario.answer(state.name), timeout, ending, None)
            case "sync" if state.target.startswith(CHILD_WORKFLOW):
                return self._child(state.target.removeprefix(CHILD_WORKFLOW), arguments, ending)
            case _:
                outcome = self.scenario.outcome(state.target, attempt)
                output = self._came(outcome, timeout, ending, arguments)
        if state.kind == "callback":
            return self._came(self.scenario.answer(state.name), timeout, ending, None)
        return output

    def _came(
        self, outcome: Outcome, timeout: int | None, ending: Ending | None, arguments: Json
    ) -> Json:
        if ending is None and timeout is not None and outcome.seconds > timeout:
            raise Failed(TIMEOUT, None, is_attempt=True)
        if outcome.error is not None:
            raise Failed(outcome.error, outcome.cause, is_attempt=True)
        return outcome.output_for(arguments)

    def _event(self, arguments: Any, ending: Ending | None, *, has_timeout: bool) -> Json:
        name, key = arguments["event"], arguments["key"]
        fitting = {
            one.id: one.data
            for one in self.scenario.events
            if (one.event, one.key) == (name, key) and one.id not in self.used
        }
        if ending is None:
            if has_timeout or len(fitting) != 1:
                raise Undecided(f"which event {name} of {key} comes, and when")
            used = next(iter(fitting))
        elif ending.event not in fitting:
            raise Contradiction(f"{ending.event} is not an event {name} of {key}, or was used")
        else:
            used = ending.event
        self.used.add(used)
        return fitting[used]

    def _child(self, workflow: str, arguments: Json, ending: Ending | None) -> Json:
        ruling = None
        if self.ruling is not None and ending is not None:
            ruling = self.ruling.others[ending.child]
        ended = _Interpreter(self.scenario, workflow, ruling).run(arguments)
        if ended is None:
            raise Undecided(f"{workflow} was redriven")
        match ended.status:
            case "SUCCEEDED":
                return ended.output
            case "TIMED_OUT":
                raise Failed(TIMEOUT, None, is_attempt=True)
            case "ABORTED":
                told = ": ".join(text for text in (ended.error, ended.cause) if text)
                cause = f"{workflow} was stopped: {told}".removesuffix(": ")
                raise Failed("Holdfast.Aborted", cause, is_attempt=True)
            case _:
                error = "States.TaskFailed" if ended.error in {None, _RUNTIME} else ended.error
                raise Failed(error, ended.cause, is_attempt=True)

    def _ending(self, line: _Line) -> Ending | None:
        """How the attempt that the history tells of next has ended; None without a ruling."""
        if self.ruling is None:
            return None
        if line.endings == len(line.visit.endings):
            raise Contradiction(f"{line.position}: attempt {line.endings + 1} was never made")
        line.endings += 1
        return line.visit.endings[line.endings - 1]

    # -- lanes -------------------------------------------------------------------------------------

    def _items(self, line: _Line, state: Map) -> list[Json]:
        items = line.input if state.items is None else self._evaluate(line, state.items)
        if not isinstance(items, list):
            text = f"Map state input must be an array but was: {_compact(items)}"
            raise self._failure(line, "States.QueryEvaluationError", text)
        if state.concurrency_max is not None:
            concurrency = self._evaluate(line, state.concurrency_max)
            self._whole(line, concurrency, "MaxConcurrency")
        return items

    def _lanes(self, line: _Line, state: Parallel | Map, lanes: Sequence[_Lane]) -> Json:
        needed, tolerated = self._quorum(line, state)
        opening = line.openings[line.position]
        line.openings[line.position] += 1
        results: dict[int, Json] = {}
        failures: list[Failed] = []
        for number in self._order(line, len(lanes)):
            path = (*line.path, (line.position, opening, number))
            try:
                results[number] = self._lane(line, state, _Line(path, line), lanes[number], results)
            except Failed as failure:
                failures.append(failure)
                results[number] = None
                if self.ruling is not None and len(failures) > tolerated:
                    raise Failed(failure.error, failure.cause) from None
            succeeded = len(results) - len(failures)
            if needed is not None and succeeded == needed and len(results) < len(lanes):
                if self.ruling is None:
                    raise Undecided(f"{state.name}: which {needed} are the first")
                break
        if len(failures) > tolerated:
            if len({(one.error, one.cause) for one in failures}) > 1 or tolerated:
                raise Undecided(f"{state.name}: which one fails first")
            raise Failed(failures[0].error, failures[0].cause)
        succeeded = len(results) - len(failures)
        if needed is not None and succeeded < needed and len(results) == len(lanes):
            text = f"{succeeded} of {needed} needed branches succeeded"
            raise Failed("Holdfast.TooFewSucceeded", text)
        if len(results) < len(lanes) and (needed is None or succeeded < needed):
            raise Contradiction(f"{state.name}: only the lanes {sorted(results)} have ended")
        return [results.get(number) for number in range(len(lanes))]

    def _order(self, line: _Line, count: int) -> Sequence[int]:
        ending = self._ending(line)
        return range(count) if ending is None else ending.order

    def _lane(
        self,
        line: _Line,
        state: Parallel | Map,
        inner: _Line,
        lane: _Lane,
        results: Mapping[int, Json],
    ) -> Json:
        start, data, inner.item = lane
        if isinstance(state, Map) and state.item_selector is not None:
            inner.position, inner.input, inner.visit = line.position, line.input, line.visit
            data = self._evaluate(inner, state.item_selector)
            inner.position = ""
        if isinstance(state, Parallel) and state.after:
            earlier = state.after[inner.path[-1][2]]
            if earlier:
                data = [results[other] for other in earlier]
        return self._follow(inner, start, data)

    def _quorum(self, line: _Line, state: Parallel | Map) -> tuple[int | None, int]:
        if state.quorum is None:
            return None, 0
        needed, tolerated = state.quorum.needed, state.quorum.tolerated
        return (
            None
            if needed is None
            else self._whole(line, self._evaluate(line, needed), "Needed", least=1),
            0
            if tolerated is None
            else self._whole(line, self._evaluate(line, tolerated), "Tolerated"),
        )

    # -- values ------------------------------------------------------------------------------------

    def _evaluate(self, line: _Line, template: Template, **extra: Json) -> Json:
        states = {"input": line.input, "context": self._context(line), **extra}
        try:
            return template.evaluate({**line.scope(), "states": states}, Moment(line.now_ms, float))
        except StateError as error:
            raise self._failure(line, error.error, error.cause, is_whole=error.is_whole) from None

    def _context(self, line: _Line) -> dict[str, Json]:
        ruling = self.ruling or Ruling()
        state: dict[str, Json] = {
            "Name": line.position,
            "EnteredTime": _iso(line.visit.entered_ms),
        }
        if isinstance(self.program.states.get(line.position), Task | Parallel | Map):
            state["RetryCount"] = line.retries.total()
        execution: dict[str, Json] = {
            "Id": ruling.run,
            "Input": self.input,
            "StartTime": _iso(ruling.started_ms),
            "Name": ruling.name or ruling.run,
            "RedriveCount": 0,
        }
        item = line.map_item()
        return {
            "Execution": execution,
            "StateMachine": {"Id": self.program.hash, "Name": self.workflow},
            "State": state,
            **({} if item is None else {"Map": {"Item": item}}),
        }

    def _failure(self, line: _Line, error: str, cause: str, *, is_whole: bool = False) -> Failed:
        if not is_whole:
            where = f"'{line.position}' (entered at the event id #{line.visit.event_id})"
            cause = f"An error occurred while executing the state {where}. {cause}"
        return Failed(error, cause)

    def _bound(self, line: _Line, template: Template | None, where: str) -> int | None:
        if template is None:
            return None
        return self._seconds(line, self._evaluate(line, template), where, least=1)

    def _seconds(self, line: _Line, value: Json, where: str, *, least: int = 0) -> int:
        seconds = self._whole(line, value, where, least=least)
        if seconds > _SECONDS_MAX:
            text = f"{where} has to be at most {_SECONDS_MAX}."
            raise self._failure(line, "States.QueryEvaluationError", text)
        return seconds

    def _whole(self, line: _Line, value: Any, where: str, *, least: int = 0) -> int:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value % 1 != 0 or value < least:
            text = f"{where} has to be a whole number from {least}."
            raise self._failure(line, "States.QueryEvaluationError", text)
        return int(value)


def _takes(errors: Sequence[str], failure: Failed) -> bool:
    """Whether a retrier or catcher of these names is one for the failure (ASL, Errors)."""
    error = failure.handled_as or failure.error or ""
    if error == _RUNTIME:
        return False
    names = {error, "States.ALL"}
    if error == "States.HeartbeatTimeout":
        names.add(TIMEOUT)
    if not error.startswith("States."):
        names.add("States.TaskFailed")
    return not names.isdisjoint(errors)


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _iso(at_ms: int) -> str:
    at = dt.datetime.fromtimestamp(at_ms // 1_000, tz=dt.UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03d}Z"
