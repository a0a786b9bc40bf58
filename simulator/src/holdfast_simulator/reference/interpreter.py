"""The expected result of a scenario: an interpreter that is independent of the engine's core.

Plain recursion, one line of control at a time, without faults, clock or storage. It shares with the
engine the reading of a machine and its expressions (`holdfast.asl`), and not a line of `core`.

Where time and order decide, it asks a `Ruling`: which attempts ended how, which event was used, in
which order lanes ended, during which visit a block's time ran out. What follows from that is its
own conclusion: outputs, retries, handlers, quorums, undos, what a late line still does. Without a
ruling it goes by the scenario alone, and raises `Undecided` where that does not decide.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from typing import Any

from holdfast.asl.parsing.parse import read_program
from holdfast.asl.program import (
    ChoiceState,
    FailState,
    Json,
    MapState,
    ParallelState,
    PassState,
    Program,
    SucceedState,
    TaskState,
    WaitState,
)
from holdfast.asl.resources import CHILD_WORKFLOW
from holdfast.asl.timestamps import nanos_of
from holdfast_simulator.reference.blocks import Move
from holdfast_simulator.reference.fields import (
    FATES,
    RUNTIME,
    TIMEOUT,
    Contradiction,
    ReferenceLine,
    StateFailure,
    Undecided,
    takes,
)
from holdfast_simulator.reference.maps import MapRuns
from holdfast_simulator.rulings import Ending, RuledEnd, Ruling, Visit
from holdfast_simulator.scenarios import AttemptOutcome, Scenario

__all__ = ["Contradiction", "Undecided", "expected"]


def expected(scenario: Scenario, ruling: Ruling | None = None) -> RuledEnd | None:
    """Return the end of the ruling's execution; without a ruling, of the started one.

    None: no end is predicted, because it or a child of it was redriven. Raises Contradiction;
    without a ruling Undecided.
    """
    if ruling is None:
        return _Interpreter(scenario, scenario.started, None).run(scenario.input)
    try:
        start_at = None if ruling.origin is None else ruling.origin.get("start_at")
        return _Interpreter(scenario, _defined_as(ruling), ruling).run(ruling.input, start_at)
    except Undecided:
        return None


def _defined_as(ruling: Ruling) -> str:
    """The workflow in whose definition it is: an item of a distributed Map has that of the Map."""
    while ruling.origin is not None:
        ruling = ruling.others[ruling.run.rsplit(".", 2)[0]]
    return ruling.workflow


@functools.lru_cache(maxsize=256)
def _program(text: str) -> Program:
    return read_program(json.loads(text))


class _Interpreter(MapRuns):
    """The interpreter of one execution."""

    def __init__(self, scenario: Scenario, workflow: str, ruling: Ruling | None) -> None:
        super().__init__(_program(json.dumps(scenario.machines[workflow])), workflow, ruling)
        self.scenario = scenario
        self.used: set[str] = set()

    def run(self, data: Json, start_at: str | None = None) -> RuledEnd | None:
        ruling, program = self.ruling, self.program
        if ruling is None and (program.deadlines or program.timeout_seconds is not None):
            raise Undecided(f"{self.workflow} has deadlines")
        if ruling is not None and (ruling.is_redriven or ruling.imposed is not None):
            return ruling.imposed
        self.input = data
        try:
            output = self._follow(ReferenceLine(()), start_at or program.start_at, data)
        except StateFailure as failure:
            return RuledEnd("FAILED", None, failure.error, failure.cause)
        return RuledEnd("SUCCEEDED", output)

    # -- lines -------------------------------------------------------------------------------------

    def _follow(self, line: ReferenceLine, name: str, data: Json) -> Json:
        """Return the result of the line. Raises StateFailure."""
        move: Move = (name, data)
        while True:
            try:
                self._outlast(line, move[0])
                if line.late and not self._is_inside(line, move[0]):
                    move = self._leave_late(line, move[1])
                elif move[0] is None:
                    return move[1]
                else:
                    move = self._visit(line, move[0], move[1])
            except StateFailure:
                self._outlast(line, None)
                if not line.late:
                    raise
                move = self._leave_block(line, self._to_leave(line))

    def _visit(self, line: ReferenceLine, name: str, data: Json) -> Move:
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
        if line.visit.passed and not self._continues(line):
            return self._unwind(line)
        return self._state(line)

    def _seen(self, ruling: Ruling, line: ReferenceLine, number: int) -> Visit:
        visits = ruling.visits.get((line.path, line.position), ())
        if number < len(visits):
            return visits[number]
        raise Contradiction(f"{line.position} in {line.path} was not entered {number + 1} times")

    # -- states ------------------------------------------------------------------------------------

    def _state(self, line: ReferenceLine) -> Move:
        match self.program.states[line.position]:
            case PassState() as state:
                extra = {}
                if state.result is not None:
                    extra["result"] = self._evaluate(line, state.result)
                return self._left(line, state, line.input, **extra)
            case SucceedState() as state:
                output = state.output
                return None, line.input if output is None else self._evaluate(line, output)
            case FailState() as state:
                texts = [
                    None if text is None else str(self._evaluate(line, text))
                    for text in (state.error, state.cause)
                ]
                raise StateFailure(texts[0], texts[1])
            case ChoiceState() as state:
                return self._choose(line, state)
            case WaitState() as state:
                self._wait(line, state)
                return self._left(line, state, line.input)
            case state:
                return self._work(line, state)

    def _choose(self, line: ReferenceLine, state: ChoiceState) -> Move:
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

    def _wait(self, line: ReferenceLine, state: WaitState) -> None:
        if state.seconds is not None:
            self._seconds(line, self._evaluate(line, state.seconds), "Seconds")
        if state.timestamp is not None:
            text = self._evaluate(line, state.timestamp)
            if not isinstance(text, str) or nanos_of(text) is None:
                what = "cannot be parsed as an ISO-8601 extended offset date-time format string"
                what = f"The Timestamp field {what}: {text}"
                raise self._failure(line, "States.QueryEvaluationError", what)

    def _left(self, line: ReferenceLine, state: Any, default: Json, **extra: Json) -> Move:
        assigned = self._object(line, state.assign, **extra)
        output = default if state.output is None else self._evaluate(line, state.output, **extra)
        line.variables |= assigned
        return getattr(state, "next", None), output

    # -- states that are retried -------------------------------------------------------------------

    def _work(self, line: ReferenceLine, state: TaskState | ParallelState | MapState) -> Move:
        attempt = 1
        while True:
            try:
                result = self._result(line, state, attempt)
                if result is None and self._is_polled(line, state):
                    attempt += 1
                    continue
                return self._left(line, state, result, result=result)
            except StateFailure as failure:
                if not self._is_retried(line, state, failure):
                    return self._caught(line, state, failure)
                attempt = attempt + 1 if failure.is_attempt else 1

    def _is_polled(self, line: ReferenceLine, state: TaskState | ParallelState | MapState) -> bool:
        """Return True when null means that the task is called again. A skip's null is a result."""
        if not isinstance(state, TaskState) or state.poll is None:
            return False
        return self.ruling is None or not line.visit.endings[line.endings - 1].is_skipped

    def _is_retried(
        self,
        line: ReferenceLine,
        state: TaskState | ParallelState | MapState,
        failure: StateFailure,
    ) -> bool:
        """Return True when the first retrier that takes the error has a retry left."""
        for number, retrier in enumerate(state.retry):
            if takes(retrier.errors, failure):
                line.retries[number] += 1
                if line.retries[number] <= retrier.attempts_max:
                    return True
                line.retries[number] -= 1
                return False
        return False

    def _caught(
        self,
        line: ReferenceLine,
        state: TaskState | ParallelState | MapState,
        failure: StateFailure,
    ) -> Move:
        catcher = next((one for one in state.catch if takes(one.errors, failure)), None)
        if catcher is None:
            raise StateFailure(failure.error, failure.cause) from None
        cause = "" if failure.error == TIMEOUT and failure.cause is None else failure.cause
        told: Json = {"Error": failure.error, "Cause": cause}
        return self._left(line, catcher, told, errorOutput=told)

    def _result(
        self, line: ReferenceLine, state: TaskState | ParallelState | MapState, attempt: int
    ) -> Json:
        match state:
            case TaskState():
                return self._attempt(line, state, attempt)
            case ParallelState():
                data = line.input
                if state.arguments is not None:
                    data = self._evaluate(line, state.arguments)
                return self._lanes(line, state, [(start, data, None) for start in state.branches])
            case MapState(run=None):
                items = self._items(line, state)
                lanes = [
                    (state.processor, item, {"Index": index, "Value": item})
                    for index, item in enumerate(items)
                ]
                return self._lanes(line, state, lanes)
            case MapState():
                return self._map_run(line, state)

    # -- tasks -------------------------------------------------------------------------------------

    def _attempt(self, line: ReferenceLine, state: TaskState, attempt: int) -> Json:
        if line.endings < len(line.visit.endings):
            line.now_ms = line.visit.endings[line.endings].began_ms
        arguments = line.input
        if state.arguments is not None:
            token = "the token" if state.kind in {"callback", "sync"} else None
            arguments = self._evaluate(line, state.arguments, token=token)
        if state.resource == "holdfast:pool:":
            self._require_pool(line, arguments)
        timeout = self._bound(line, state.timeout_seconds, "TimeoutSeconds")
        heartbeat = self._bound(line, state.heartbeat_seconds, "HeartbeatSeconds")
        ending = self._ending(line)
        if ending is None and (heartbeat or (timeout and state.target.startswith(CHILD_WORKFLOW))):
            raise Undecided(f"{state.name}: whether it is in time")
        if ending is not None:
            line.now_ms = ending.ended_ms
            if ending.is_skipped:
                return ending.given
            if ending.error in FATES:
                handled_as = "States.HeartbeatTimeout" if ending.is_heartbeat else None
                raise StateFailure(ending.error, ending.cause, handled_as, is_attempt=True)
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
        match state.kind:
            case "callback":
                return self._came(self.scenario.answer(state.name), timeout, ending, None)
            case "sync":
                job = self.scenario.job(state.target, attempt)
                return self._came(job, timeout, ending, arguments)
            case _:
                return output

    def _require_pool(self, line: ReferenceLine, arguments: Json) -> None:
        pool = arguments.get("pool") if isinstance(arguments, dict) else None
        if not isinstance(pool, str) or not re.fullmatch("[A-Za-z0-9_-]{1,80}", pool):
            what = f"ValueError: {pool!r} is not the name of a pool"
            raise self._failure(line, "States.QueryEvaluationError", what)

    def _came(
        self, outcome: AttemptOutcome, timeout: int | None, ending: Ending | None, arguments: Json
    ) -> Json:
        if ending is None and timeout is not None and outcome.seconds > timeout:
            raise StateFailure(TIMEOUT, None, is_attempt=True)
        if outcome.error is not None:
            raise StateFailure(outcome.error, outcome.cause, is_attempt=True)
        return outcome.output_for(arguments)

    def _event(self, arguments: Any, ending: Ending | None, *, has_timeout: bool) -> Json:
        name, key = arguments["event"], arguments["key"]
        fitting = {
            one.id: one
            for one in self.scenario.events
            if (one.event, one.key) == (name, key) and one.id not in self.used
        }
        if ending is None and (has_timeout or len(fitting) != 1):
            raise Undecided(f"which event {name} of {key} comes, and when")
        used = next(iter(fitting)) if ending is None else ending.event
        if used not in fitting:
            raise Contradiction(f"{used} is not an event {name} of {key}, or was used")
        self.used.add(used)
        brought = fitting[used]
        if brought.error is not None:
            raise StateFailure(brought.error, brought.cause, is_attempt=True)
        return brought.data

    def _child(self, workflow: str, arguments: Json, ending: Ending | None) -> Json:
        ruling = None
        if self.ruling is not None and ending is not None:
            ruling = self.ruling.others.get(ending.child)
            if ruling is None:
                raise Contradiction(f"{workflow} has ended, and never began: {ending.child}")
        ended = _Interpreter(self.scenario, workflow, ruling).run(arguments)
        if ended is None:
            raise Undecided(f"{workflow} was redriven")
        match ended.status:
            case "SUCCEEDED":
                return ended.output
            case "TIMED_OUT":
                raise StateFailure(TIMEOUT, None, is_attempt=True)
            case "ABORTED":
                told = ": ".join(text for text in (ended.error, ended.cause) if text)
                cause = f"{workflow} was stopped: {told}".removesuffix(": ")
                raise StateFailure("Holdfast.Aborted", cause, is_attempt=True)
            case _:
                error = "States.TaskFailed" if ended.error in {None, RUNTIME} else ended.error
                raise StateFailure(error, ended.cause, is_attempt=True)

    # -- distributed Maps --------------------------------------------------------------------------

    def _told(self, target: str, attempt: int) -> Json:
        return self._came(self.scenario.outcome(target, attempt), None, None, None)

    def _item_ended(self, ruling: Ruling | None, data: Json, start_at: str) -> RuledEnd | None:
        return _Interpreter(self.scenario, self.workflow, ruling).run(data, start_at)
