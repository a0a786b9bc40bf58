"""Runs a workflow twice, as plain Python and compiled on the core, and compares what happened.

Both runs write the same trace: every task with its arguments, every wait, every sleep.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from holdfast.asl.parse import parse_definition
from holdfast.core.advance import advance
from holdfast.core.commands import RunAttempt, StartTimer, owed
from holdfast.core.facts import (
    EventReceived,
    Fact,
    FailedWith,
    Moment,
    Started,
    Succeeded,
    Tick,
)
from holdfast.core.state import Awaiting, Execution
from holdfast.dsl import surface
from holdfast.dsl.compile import compile_workflow
from holdfast.dsl.registry import Registry
from holdfast.dsl.surface import Task, WaitTimeout, Workflow
from holdfast.limits import CLOCK_ERROR_MS

Call = tuple[Any, ...]
_numbers = itertools.count()


@contextmanager
def loaded(folder: Path, source: str) -> Iterator[ModuleType]:
    """A module made of `source`, importable while the block runs."""
    name = f"program_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


@dataclass(frozen=True)
class Outcome:
    """`output` of a success; `error` and `cause` of a failure."""

    output: Any = None
    error: str | None = None
    cause: str | None = None
    trace: list[Call] = field(default_factory=list)


#: What arrives: answers by event name or by the title of a question; the rest times out.
Arrivals = Mapping[str, Any]


def run_direct(workflow: Workflow[..., Any], values: Mapping[str, Any], come: Arrivals) -> Outcome:
    harness = _Harness(come)
    token = surface.harness.set(harness)
    try:
        normal: Any = workflow.normalise_input(to_jsonable_python(dict(values)))
        arguments = workflow._boundary.parse_arguments(normal)
        output = to_jsonable_python(workflow(**arguments))
    except Exception as error:  # noqa: BLE001 - the outcome of the run
        name = "States.Timeout" if type(error) is WaitTimeout else type(error).__name__
        return Outcome(error=name, cause=str(error), trace=harness.trace)
    finally:
        surface.harness.reset(token)
    return Outcome(output=output, trace=harness.trace)


@dataclass
class _Harness:
    come: Arrivals
    trace: list[Call] = field(default_factory=list)

    def run_task(self, task: Task[..., Any], arguments: dict[str, Any], /) -> Any:
        plain = to_jsonable_python(arguments)
        self.trace.append((task.name, plain))
        result = task.call_json(plain)
        return TypeAdapter(task._boundary._result._type).validate_python(result)

    def wait(
        self, kind: str, name: str, payload: Any, /, *, arguments: Any, timeout_seconds: Any
    ) -> Any:
        plain = to_jsonable_python(dict(arguments))
        self.trace.append((kind, name, plain.get("key"), timeout_seconds))
        if name not in self.come:
            assert timeout_seconds is not None, f"{name} never comes"
            raise WaitTimeout("")
        return TypeAdapter(payload).validate_python(self.come[name])

    def sleep(self, seconds: float, /) -> None:
        self.trace.append(("sleep", seconds))


def run_compiled(
    workflow: Workflow[..., Any], values: Mapping[str, Any], come: Arrivals
) -> Outcome:
    module = sys.modules[workflow.function.__module__]
    tasks = Registry.from_modules([module.__name__]).tasks
    run = _Run(tasks, come)
    compiled = compile_workflow(workflow)
    program = parse_definition(compiled.asl)
    normal = workflow.normalise_input(to_jsonable_python(dict(values)))
    state = advance(program, None, [Started("run", None, "w", normal, 0)], run.moment).state
    while not state.is_ended:
        state = advance(program, state, run.next_facts(state), run.moment).state
    if state.status == "SUCCEEDED":
        return Outcome(output=state.output, trace=run.trace)
    return Outcome(error=state.error, cause=state.cause, trace=run.trace)


@dataclass
class _Run:
    tasks: Mapping[str, Task[..., Any]]
    come: Arrivals
    trace: list[Call] = field(default_factory=list)
    now_ms: int = 0

    @property
    def moment(self) -> Moment:
        return Moment(self.now_ms, lambda: 0.5, lambda _: None, CLOCK_ERROR_MS)

    def next_facts(self, state: Execution) -> list[Fact]:
        """Steps in the order in which they were entered; time passes when nothing else can."""
        commands = owed(state)
        for command in commands:
            if isinstance(command, RunAttempt):
                attempt = command.attempt
                self.trace.append((attempt.target, attempt.arguments))
                return [self._attempt(attempt.entry, attempt.attempt, attempt)]
        for frame in state.frames.values():
            if isinstance(frame.waiting, Awaiting):
                found = self._awaiting(frame.waiting)
                if found is not None:
                    return [found]
        dues = [command.due_ms for command in commands if isinstance(command, StartTimer)]
        if dues and not any(isinstance(f.waiting, Awaiting) for f in state.frames.values()):
            self.trace.append(("sleep", (min(dues) - self.now_ms) / 1000))
        self.now_ms = min(dues)
        late = Moment(self.now_ms + 2 * CLOCK_ERROR_MS, lambda: 0.5, lambda _: None, CLOCK_ERROR_MS)
        self.now_ms = late.now_ms
        return [Tick()] if dues else []

    def _attempt(self, entry: int, number: int, attempt: Any) -> Fact:
        try:
            output = self.tasks[attempt.target].call_json(attempt.arguments)
        except Exception as error:  # noqa: BLE001 - what the worker does
            return FailedWith(entry, number, type(error).__name__, str(error))
        return Succeeded(entry, number, output)

    def _awaiting(self, waiting: Awaiting) -> Fact | None:
        arguments: Any = waiting.arguments
        name = arguments.get("event") or arguments["title"]
        seconds = None if waiting.due_ms is None else (waiting.due_ms - waiting.since_ms) / 1000
        kind = "event" if waiting.kind == "event" else "ask"
        self.trace.append((kind, name, arguments.get("key"), seconds))
        if name not in self.come:
            return None
        data = self.come[name]
        if kind == "event":
            return EventReceived(waiting.entry, f"e{waiting.entry}", data, 2**40)
        return Succeeded(waiting.entry, waiting.attempt, data)


EXPRESSION_ERROR = "States.QueryEvaluationError"


def assert_same(
    workflow: Workflow[..., Any], values: Mapping[str, Any], come: Arrivals | None = None
) -> Outcome:
    """Both runs end alike, after the same steps; gives what the compiled one came to.

    An expression's own error has another name on the engine; both must fail, and at the same step.
    """
    direct = run_direct(workflow, values, come or {})
    compiled = run_compiled(workflow, values, come or {})
    if compiled.error == EXPRESSION_ERROR:
        assert direct.error in ("IndexError", "KeyError", "ZeroDivisionError", "ValueError"), direct
    else:
        assert (compiled.output, compiled.error) == (direct.output, direct.error), (
            direct,
            compiled,
        )
        assert (compiled.cause or "") == (direct.cause or "")
    assert compiled.trace == direct.trace
    return compiled
