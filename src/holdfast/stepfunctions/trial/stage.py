"""Prepares one state for a test run: the engine runs it, and everything that it computes is
recorded.

The state is put into a program of its own, in which every template is wrapped: it reads the context
object of the test, and a function records its value. A stub replaces each next state. A Map or
Parallel, whose result can only be a mock, is replaced by a task: retry, catch, output and variables
are the same, and the result of a task comes from outside, too.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from holdfast.asl.jsonata.jsonata import EvaluationMoment
from holdfast.asl.program import (
    Catcher,
    ChoiceRule,
    Json,
    MapState,
    ParallelState,
    Program,
    State,
    SucceedState,
    TaskKind,
    TaskState,
)
from holdfast.asl.template import StateError, Template
from holdfast.core.advance import advance
from holdfast.core.apply.apply import fold
from holdfast.core.events import Event
from holdfast.core.facts import DecisionInputs as Now
from holdfast.core.facts import Fact, FailedWith, Succeeded, Tick
from holdfast.core.state import ROOT, Attempt, Execution, Timer
from holdfast.errors import HoldfastBug
from holdfast.runtime.storage.log import draw

Bindings: TypeAlias = Mapping[str, Json]
#: A function that evaluates a field and records the intermediate results.
Observe: TypeAlias = Callable[[Template, Bindings, EvaluationMoment], Json]

_ROLE: Final[tuple[str, TaskKind, str]] = ("holdfast:task:tested", "task", "tested")
#: The prefix of the names of next states. With it, the tested state may also name itself as its
#: next state.
_BEYOND: Final = "beyond:"


@dataclass(slots=True)
class Notes:
    """The intermediate results, by the names of inspectionData. The values of `stages` are JSON
    text.

    `error` is the last error of a template, without the first sentence that the engine adds.
    """

    stages: dict[str, Json] = field(default_factory=dict)
    numbers: dict[str, int | float] = field(default_factory=dict)
    http: Mapping[str, Any] = field(default_factory=dict)
    role_arn: str | None = None
    error: StateError | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """The data with which a state is entered. `retries` says how often each of its retriers was
    already used.

    `chance` is the seed of random numbers.
    """

    input: Json
    variables: Mapping[str, Json]
    context: Json
    retries: int
    chance: bytes


@dataclass(frozen=True, slots=True)
class _Observed:
    template: Template
    context: Json
    notes: Notes
    observe: Observe

    def evaluate(self, bindings: Bindings, moment: EvaluationMoment) -> Json:
        states = {**cast("Bindings", bindings["states"]), "context": self.context}
        try:
            return self.observe(self.template, {**bindings, "states": states}, moment)
        except StateError as error:
            self.notes.error = error
            raise


@dataclass(frozen=True, slots=True)
class Given:
    """The template of a state without arguments or output: its value is the state's result, or
    before that its input.
    """

    def evaluate(self, bindings: Bindings, moment: EvaluationMoment) -> Json:  # noqa: ARG002
        states = cast("Bindings", bindings["states"])
        return states.get("result", states["input"])


def fresh(scene: Scene, now_ms: int) -> EvaluationMoment:
    """Return time and random numbers for one evaluation: each stage of a field draws the same
    numbers.
    """
    counter = itertools.count()
    return EvaluationMoment(now_ms, lambda: draw(scene.chance.hex(), 0, next(counter)))


# -- the program -----------------------------------------------------------------------------------


def stage(state: State, scene: Scene, notes: Notes, observers: Mapping[str, Observe]) -> Program:
    """Return a program with only this state. `observers` are by the field of the state."""

    def observed(name: str, value: Any) -> Any:
        match value:
            case tuple():
                return tuple(observed(name, item) for item in value)
            case ChoiceRule() | Catcher():
                return _rebuilt(value, lambda _, item: observed("", item))
            case _ if hasattr(value, "evaluate"):
                observe = observers.get(name, evaluate)
                return _Observed(value, scene.context, notes, observe)
            case _:
                return value

    played = _played(state)
    if "output" in observers and getattr(played, "output", None) is None:
        played = dataclasses.replace(cast("Any", played), output=Given())
    tested = _rebuilt(played, observed)
    stubs = {name: SucceedState(name, None) for name in _targets(tested)}
    states = {**stubs, state.name: tested}
    return Program(hash="", comment="", start_at=state.name, states=states, timeout_seconds=None)


def evaluate(template: Template, bindings: Bindings, moment: EvaluationMoment) -> Json:
    return template.evaluate(bindings, moment)


def _rebuilt(value: Any, change: Callable[[str, Any], Any]) -> Any:
    """Return the state, rule or catcher with `change` applied to each field, and with its next
    states renamed.
    """
    fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    changed = {name: change(name, item) for name, item in fields.items()}
    for name in ("next", "default"):
        if changed.get(name) is not None:
            changed[name] = _BEYOND + changed[name]
    return type(value)(**changed)


def _targets(state: Any) -> list[str]:
    rules = (*getattr(state, "rules", ()), *getattr(state, "catch", ()))
    found = [getattr(state, "next", None), getattr(state, "default", None)]
    found += [rule.next for rule in rules]
    return [name for name in found if name is not None]


def _played(state: State) -> State:
    """Return the state, or the task that replaces it."""
    if not isinstance(state, TaskState | MapState | ParallelState):
        return state
    resource, kind, target = _ROLE
    arguments = None if isinstance(state, MapState) else state.arguments
    given = arguments or Given()
    if isinstance(state, TaskState):
        return dataclasses.replace(
            state, resource=resource, kind=kind, target=target, arguments=given
        )
    return TaskState(
        name=state.name,
        next=state.next,
        assign=state.assign,
        output=state.output,
        resource=resource,
        kind=kind,
        target=target,
        arguments=given,
        credentials=None,
        timeout_seconds=None,
        heartbeat_seconds=None,
        retry=state.retry,
        catch=state.catch,
    )


# -- the run ---------------------------------------------------------------------------------------


class Play:
    """Runs a prepared program: first up to its wait, then to the end."""

    def __init__(self, program: Program, scene: Scene, now_ms: int) -> None:
        self._program = program
        self._now_ms = now_ms
        self._draw = fresh(scene, now_ms).draw
        self.events: list[Event] = []
        self.state = _entered(program, scene, now_ms)
        self._advance([], now_ms)
        if isinstance(self._waiting, Timer):
            # Continue after a Wait without waiting for it, because a test shows what follows.
            self._advance([Tick()], self._waiting.due_ms)

    @property
    def attempt(self) -> Attempt | None:
        """Return the attempt of the task whose result is missing; None when no task was
        scheduled.
        """
        return self._waiting if isinstance(self._waiting, Attempt) else None

    def succeed(self, output: Json) -> None:
        attempt = self._require_attempt()
        self._advance([Succeeded(attempt.entry, attempt.attempt, output)], self._now_ms)

    def fail(self, error: str | None, cause: str | None) -> None:
        attempt = self._require_attempt()
        self._advance([FailedWith(attempt.entry, attempt.attempt, error, cause)], self._now_ms)

    def find(self, ending: str) -> Event | None:
        """Return the first event whose type has this ending."""
        return next((event for event in self.events if event.type.endswith(ending)), None)

    @property
    def next_state(self) -> str | None:
        entered = self.find("StateEntered")
        return None if entered is None else str(entered.details["name"]).removeprefix(_BEYOND)

    @property
    def _waiting(self) -> Any:
        frame = self.state.frames.get(ROOT)
        return None if frame is None else frame.waiting

    def _require_attempt(self) -> Attempt:
        if self.attempt is None:
            raise HoldfastBug("a result was given to a state on trial that waits for none")
        return self.attempt

    def _advance(self, offered: list[Fact], now_ms: int) -> None:
        moment = Now(now_ms=now_ms, draw=self._draw, claim=lambda _: None, clock_error_ms=0)
        step = advance(self._program, self.state, offered, moment)
        self.events += step.events
        self.state = step.state


def _entered(program: Program, scene: Scene, now_ms: int) -> Execution:
    """Return an execution that has entered the state; the next decision evaluates it."""
    state = program.states[program.start_at]
    own = {"run": "", "workflow": "", "definition": program.hash}
    entered = {"name": state.name, "input": scene.input}
    execution = fold(
        [
            Event("ExecutionStarted", 1, 0, now_ms, {"input": scene.input}, own),
            Event(f"{type(state).__name__}Entered", 2, 0, now_ms, entered, {}),
        ]
    )
    assert execution is not None
    retries = {number: scene.retries for number, _ in enumerate(getattr(state, "retry", ()))}
    frame = execution.frames[ROOT]
    return execution.with_frame(frame._replace(variables=scene.variables, retries=retries))
