"""The fields of states, for the reference interpreter: a line, and the values that it sees."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.program import Json, MapState, ParallelState, Program, Quorum, TaskState
from holdfast.asl.template import StateError, Template
from holdfast_simulator.rulings import LinePath, Ruling, Visit

TIMEOUT: Final = "States.Timeout"
RUNTIME: Final = "States.Runtime"
#: How an attempt fails without a word from the task: the ruling is taken at its word.
FATES: Final = frozenset(
    {TIMEOUT, "Holdfast.WorkerLost", "StepInterrupted", "Holdfast.TooDeep", "InvalidArguments"}
)
_SECONDS_MAX: Final = 99_999_999


class Undecided(Exception):  # noqa: N818  # not an error: the scenario leaves it open
    """The scenario alone does not say what happens: time or order decides."""


class Contradiction(Exception):  # noqa: N818  # it reports an error of the history
    """The ruling contains something that cannot have happened."""


@dataclass
class StateFailure(Exception):  # noqa: N818  # as the states call it
    """A state failed. `handled_as`: the error name for handlers, where it differs from the reported
    one. `is_attempt`: an attempt ended with it, and the next one is counted.
    """

    error: str | None
    cause: str | None
    handled_as: str | None = None
    is_attempt: bool = False


@dataclass
class ReferenceLine:
    """One line of control. `late`: the blocks whose deadlines passed while the line is shielded."""

    path: LinePath
    outer: ReferenceLine | None = None
    item: Json = None
    position: str = ""
    input: Json = None
    visit: Visit = field(default_factory=Visit)
    variables: dict[str, Json] = field(default_factory=dict)
    retries: Counter[int] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    endings: int = 0
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


class Fields:
    """The fields of one execution's states, evaluated."""

    def __init__(self, program: Program, workflow: str, ruling: Ruling | None) -> None:
        self.program = program
        self.workflow = workflow
        self.ruling = ruling
        self.input: Json = None

    def _evaluate(
        self, line: ReferenceLine, template: Template, *, token: Json = None, **extra: Json
    ) -> Json:
        context = self._context(line)
        if token is not None:
            context["Task"] = {"Token": token}
        states = {"input": line.input, "context": context, **extra}
        try:
            return template.evaluate(
                {**line.scope(), "states": states}, EvaluationMoment(line.now_ms, float)
            )
        except StateError as error:
            raise self._failure(line, error.error, error.cause, is_whole=error.is_whole) from None

    def _object(
        self, line: ReferenceLine, template: Template | None, **extra: Json
    ) -> dict[str, Json]:
        value = {} if template is None else self._evaluate(line, template, **extra)
        assert isinstance(value, dict)
        return value

    def _context(self, line: ReferenceLine) -> dict[str, Json]:
        ruling = self.ruling or Ruling()
        state: dict[str, Json] = {
            "Name": line.position,
            "EnteredTime": iso(line.visit.entered_ms),
        }
        if isinstance(self.program.states.get(line.position), TaskState | ParallelState | MapState):
            state["RetryCount"] = line.retries.total()
        execution: dict[str, Json] = {
            "Id": ruling.run,
            "Input": self.input,
            "StartTime": iso(ruling.started_ms),
            "Name": ruling.name or ruling.run,
            "RedriveCount": 0,
        }
        machine: dict[str, Json] = {"Id": self.program.hash, "Name": self.workflow}
        if ruling.origin is not None:
            origin = ruling.origin
            execution |= {"Id": origin["execution_arn"], "Name": origin["execution_name"]}
            execution["RoleArn"] = origin["role_arn"]
            machine = {"Id": origin["state_machine_arn"], "Name": origin["state_machine_name"]}
            if origin["type"] == "EXPRESS":
                del execution["RedriveCount"]
        item = line.map_item()
        return {
            "Execution": execution,
            "StateMachine": machine,
            "State": state,
            **({} if item is None else {"Map": {"Item": item}}),
        }

    def _failure(
        self, line: ReferenceLine, error: str, cause: str, *, is_whole: bool = False
    ) -> StateFailure:
        if not is_whole:
            where = f"'{line.position}' (entered at the event id #{line.visit.event_id})"
            cause = f"An error occurred while executing the state {where}. {cause}"
        return StateFailure(error, cause)

    def _quorum(self, line: ReferenceLine, quorum: Quorum | None) -> tuple[int | None, int]:
        """Return how many lanes must succeed (None: all that do not fail), and how many
        may fail.
        """
        needed, tolerated = None, 0
        if quorum is not None and quorum.needed is not None:
            needed = self._whole(line, self._evaluate(line, quorum.needed), "Needed", least=1)
        if quorum is not None and quorum.tolerated is not None:
            tolerated = self._whole(line, self._evaluate(line, quorum.tolerated), "Tolerated")
        return needed, tolerated

    def _bound(self, line: ReferenceLine, template: Template | None, where: str) -> int | None:
        if template is None:
            return None
        return self._seconds(line, self._evaluate(line, template), where, least=1)

    def _seconds(self, line: ReferenceLine, value: Json, where: str, *, least: int = 0) -> int:
        seconds = _as_whole(value)
        if least and (seconds is None or seconds < least):
            problem = "cannot be parsed as a positive integer"
        elif seconds is None:
            problem = "cannot be parsed as a long value"
        elif seconds < 0:
            problem = "references a negative value"
        elif seconds > _SECONDS_MAX:
            problem = "references too large a value"
        else:
            return seconds
        text = f"The {where} field {problem}: {_bare(value)}"
        raise self._failure(line, "States.QueryEvaluationError", text)

    def _whole(self, line: ReferenceLine, value: Any, where: str, *, least: int | None = 0) -> int:
        number = _as_whole(value)
        if number is None:
            text = (
                f'The {where} field refers to value "{_bare(value)}" which is not a valid integer'
            )
        elif least is None or number >= least:
            return number
        else:
            text = f"{where} must be positive." if number == 0 else f"{where} cannot be negative."
        raise self._failure(line, "States.QueryEvaluationError", text)


def _as_whole(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
        return None
    return int(value)


def _bare(value: Json) -> str:
    """Return a text as it is, and any other value as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def takes(errors: Sequence[str], failure: StateFailure) -> bool:
    """Return True when a retrier or catcher with these names takes the failure (ASL, Errors)."""
    error = failure.handled_as or failure.error or ""
    if error == RUNTIME:
        return False
    names = {error, "States.ALL"}
    if error == "States.HeartbeatTimeout":
        names.add(TIMEOUT)
    if error not in {TIMEOUT, "States.HeartbeatTimeout"}:
        names.add("States.TaskFailed")
    return not names.isdisjoint(errors)


def iso(at_ms: int) -> str:
    at = dt.datetime.fromtimestamp(at_ms // 1_000, tz=dt.UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03d}Z"
