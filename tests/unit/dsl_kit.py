"""Programs of the language's own tests, run by the testing kit: real tasks, scripted answers."""

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

from pydantic_core import to_jsonable_python

from holdfast.api.registry import Registry
from holdfast.api.surface import Workflow
from holdfast.testing import Call, World, real
from holdfast.testing.compiled import run_compiled as run_on_the_core
from holdfast.testing.script import Script
from holdfast.testing.world import STARTED

__all__ = ["EXPRESSION_ERROR", "Arrivals", "Outcome", "assert_same", "loaded", "run_compiled"]

EXPRESSION_ERROR = "States.QueryEvaluationError"
_numbers = itertools.count()


@contextmanager
def loaded(folder: Path, source: str) -> Iterator[ModuleType]:
    """A module made of `source`, importable while the block runs."""
    name = f"program_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # The loader would also store the bytecode, which nothing reads again.
        exec(compile(source, path, "exec"), vars(module))
        yield module
    finally:
        del sys.modules[name]


@dataclass(frozen=True)
class Outcome:
    """`output` of a success; `error` and `cause` of a failure. `trace`: names and arguments."""

    output: Any = None
    error: str | None = None
    cause: str | None = None
    trace: list[tuple[Any, ...]] = field(default_factory=list)


#: The messages: answers by event name or by the title of a question; all others time out.
Arrivals = Mapping[str, Any]


def assert_same(
    workflow: Workflow[..., Any], values: Mapping[str, Any], come: Arrivals | None = None
) -> Outcome:
    """Both runs end alike, after the same steps."""
    world = World(dict(come or {}), others=real)
    run = world.run_json(workflow, to_jsonable_python(dict(values)))
    end = run.end
    error = EXPRESSION_ERROR if run.compiled_error == EXPRESSION_ERROR else end.error
    return Outcome(end.output, error, end.cause, _rows(run.calls))


def run_compiled(
    workflow: Workflow[..., Any], values: Mapping[str, Any], come: Arrivals
) -> Outcome:
    """The compiled run alone, where plain Python cannot be asked."""
    module = sys.modules[workflow.function.__module__]
    registry = Registry.from_modules([module.__name__])
    script = Script(
        outcomes=come,
        others=real,
        sent=(),
        started_ms=round(STARTED.timestamp() * 1_000),
        workflow=workflow.name,
        tasks=dict(registry.tasks),
        workflows=dict(registry.workflows),
    )
    normal: Any = workflow.normalise_input(to_jsonable_python(dict(values)))
    trace = run_on_the_core(workflow, normal, script, None)
    assert trace.end is not None, trace.why
    return Outcome(trace.end.output, trace.end.error, trace.end.cause, _rows(trace.calls))


def _rows(calls: list[Call]) -> list[tuple[Any, ...]]:
    return [(call.name or call.kind, call.arguments) for call in calls]
