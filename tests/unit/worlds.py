"""A world for the shipped workflows: tasks, time, and messages that come at their time.

`run_both` runs a workflow as plain Python and compiled, and holds the two against each other: the
same outcome, the same calls with the same arguments in the same order, the same time at the end.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

from pydantic_core import to_jsonable_python

from holdfast import Task, TaskContext, WaitTimeout, Workflow
from holdfast.asl.parse import parse_definition
from holdfast.asl.program import Program
from holdfast.core.advance import advance
from holdfast.core.facts import EventReceived, Fact, FailedWith, Moment, Started, Succeeded, Tick
from holdfast.core.state import Attempt, Awaiting, Execution
from holdfast.dsl import surface
from holdfast.dsl.compile import compile_workflow
from holdfast.dsl.registry import Registry

MODULES = (
    "statemachines.order_fulfilment",
    "statemachines.loan_approval",
    "statemachines.document_signing",
)
EVENT_RETENTION_MS = 14 * 86_400_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event for `key`, or an answer when `key` is None."""

    delay: timedelta
    id: str
    key: str | None
    data: Any


@dataclass(slots=True)
class World:
    """What comes from outside, and what was done. Time passes only in waits and retries."""

    arrivals: list[Arrival] = field(default_factory=list)
    now: timedelta = timedelta(0)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    attempts: Counter[str] = field(default_factory=Counter)
    results: list[Any] = field(default_factory=list)

    @property
    def steps(self) -> list[str]:
        return [name for name, _ in self.calls]

    def attempt(self, task: Task[..., Any], number: int, call: Callable[[], Any]) -> Any:
        """One attempt, made twice, as after a crash between the work and its commit."""
        self.attempts[task.name] += 1
        key = f"run/{len(self.calls)}"
        with surface.running_task(TaskContext("run", None, "", task.name, number, key)):
            result = call()
            assert call() == result, f"{task.name} gives another result when it runs again"
        self.results.append(result)
        return result

    def arrival(self, key: str | None, timeout: timedelta) -> Arrival | None:
        """The first to arrive in time; None, and the time has passed, if there is none."""
        until = self.now + timeout
        coming = [a for a in self.arrivals if a.key == key and a.delay <= until]
        self.now = max(self.now, coming[0].delay) if coming else until
        return coming[0] if coming else None


# -- Direct ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Direct:
    """The harness of a direct run: retries as the engine does."""

    world: World

    def run_task(self, task: Task[..., Any], arguments: dict[str, Any], /) -> Any:
        self.world.calls.append((task.name, to_jsonable_python(arguments)))
        attempts_max = task.retry.max_attempts if task.retry else 1
        retried = task.retry.on if task.retry else ()
        for number in range(1, attempts_max):
            try:
                return self.world.attempt(task, number, lambda: task.function(**arguments))
            except retried:
                continue
        return self.world.attempt(task, attempts_max, lambda: task.function(**arguments))

    def wait(
        self,
        kind: str,
        name: str,
        payload: type[Any],
        /,
        *,
        arguments: Mapping[str, Any],
        timeout_seconds: float | None,
    ) -> Any:
        assert timeout_seconds is not None, f"{kind} {name} would wait for ever"
        found = self.world.arrival(arguments.get("key"), timedelta(seconds=timeout_seconds))
        if found is None:
            raise WaitTimeout(f"no {name}")
        return payload.model_validate(found.data)

    def sleep(self, seconds: float, /) -> None:
        self.world.now += timedelta(seconds=seconds)


@contextmanager
def _installed(world: World) -> Iterator[None]:
    token = surface.harness.set(Direct(world))
    try:
        yield
    finally:
        surface.harness.reset(token)


# -- Compiled --------------------------------------------------------------------------------------


@cache
def _program(name: str) -> Program:
    return parse_definition(compile_workflow(_registry().workflows[name]).asl)


@cache
def _registry() -> Registry:
    return Registry.from_modules(MODULES)


def _run_compiled(workflow: Workflow[..., Any], arguments: Mapping[str, Any], world: World) -> Any:
    program = _program(workflow.name)
    normal = workflow.normalise_input(to_jsonable_python(arguments))
    start = Started("run", None, workflow.name, normal, 0)
    state = advance(program, None, [start], _moment(world)).state
    while not state.is_ended:
        fact = _next_fact(state, world)
        state = advance(program, state, [fact], _moment(world)).state
    assert state.status == "SUCCEEDED", f"{state.status}: {state.error}: {state.cause}"
    return state.output


def _moment(world: World) -> Moment:
    """Drawn delays are 0, so that retries take no time, as in a direct run."""
    now_ms = int(world.now.total_seconds() * 1_000)
    return Moment(now_ms, draw=lambda: 0.0, claim=lambda _: None, clock_error_ms=0)


def _next_fact(state: Execution, world: World) -> Fact:
    """What happens next at the oldest open place, so that branches take turns in order."""
    waiting = [frame.waiting for frame in state.frames.values()]
    oldest = min(
        (place for place in waiting if isinstance(place, Attempt | Awaiting)),
        key=lambda place: place.entry,
    )
    if isinstance(oldest, Attempt):
        return _run_attempt(oldest, world)
    assert oldest.due_ms is not None, f"{oldest.kind} would wait for ever"
    timeout = timedelta(milliseconds=oldest.due_ms) - world.now
    found = world.arrival(oldest.event_key if oldest.kind == "event" else None, timeout)
    if found is None:
        return Tick()
    if oldest.kind == "ask":
        return Succeeded(oldest.entry, oldest.attempt, found.data)
    return EventReceived(oldest.entry, found.id, found.data, oldest.due_ms + EVENT_RETENTION_MS)


def _run_attempt(place: Attempt, world: World) -> Fact:
    task = _registry().tasks[place.target]
    arguments: Any = place.arguments
    if place.attempt == 1:
        world.calls.append((task.name, arguments))
    try:
        output = world.attempt(task, place.attempt, lambda: task.call_json(arguments))
    except Exception as error:  # noqa: BLE001 - any error of a task crosses by its class name
        return FailedWith(place.entry, place.attempt, type(error).__name__, str(error))
    return Succeeded(place.entry, place.attempt, output)


# -- Both ------------------------------------------------------------------------------------------


def run_both(workflow: Workflow[..., Any], *arguments: Any, arrivals: list[Arrival]) -> World:
    """The world after a direct run, `outcome_of` it included; a compiled run agrees with it."""
    direct, compiled = World(list(arrivals)), World(list(arrivals))
    with _installed(direct):
        outcome = workflow(*arguments)
    direct.results.append(outcome)
    bound = inspect.signature(workflow.function).bind(*arguments)
    compiled.results.append(_run_compiled(workflow, bound.arguments, compiled))
    assert to_jsonable_python(direct.results) == compiled.results
    assert direct.calls == compiled.calls
    assert (direct.attempts, direct.now) == (compiled.attempts, compiled.now)
    return direct
