"""Workflows for people who think in graphs: steps, and what each of them depends on.

    nightly = dag(
        "nightly",
        step("extract", extract),
        step("clean", clean, depends_on=["extract"]),
    )

A parameter of a task that is called like a step it depends on gets that step's result; any other
is a field of the input. `arguments` may say otherwise.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from types import CodeType, FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast.api.branches import run_after
from holdfast.api.tasks import Task, Workflow
from holdfast.errors import WorkflowError

if TYPE_CHECKING:
    from holdfast.compiler.graphs.inputs import Input
    from holdfast.compiler.graphs.plan import Plan


@dataclass(frozen=True, slots=True)
class FromStep:
    """Stands for the result of a step."""

    id: str


@dataclass(frozen=True, slots=True)
class FromInput:
    """Stands for a field of the input."""

    field: str


def from_step(id: str) -> FromStep:  # noqa: A002 - what the reader of a graph calls it
    """In `arguments`: the result of a step that this one depends on."""
    return FromStep(str(id))


def from_input(field: str) -> FromInput:
    """In `arguments`: the field of the input that is called so."""
    return FromInput(str(field))


@dataclass(frozen=True, slots=True)
class InPython:
    """The call that wrote something: an instruction of a module's code."""

    module: str
    code: CodeType
    instruction: int


@dataclass(frozen=True, slots=True)
class InJson:
    """A place of a document, such as `/steps[2]`; `module` is where it was read."""

    module: str
    file: str
    text: str
    location: str


WrittenAt: TypeAlias = InPython | InJson


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a graph. Made by `step`."""

    id: str
    task: Task[..., Any]
    depends_on: tuple[str, ...]
    arguments: Mapping[str, Any]
    written: WrittenAt


def step(
    id: str,  # noqa: A002 - what the reader of a graph calls it
    task: Task[..., Any],
    *,
    depends_on: list[str] | tuple[str, ...] = (),
    arguments: Mapping[str, object] | None = None,
) -> Step:
    """Runs `task` when all steps of `depends_on` have succeeded; they may be defined later.

    `arguments` by the names of parameters: values, and `from_step` and `from_input` in them.
    """
    # Without a type checker a caller may give one id; its letters must not become ids.
    names = (depends_on,) if isinstance(depends_on, str) else tuple(depends_on)
    written = _calling(sys._getframe(1))  # noqa: SLF001
    return Step(id, task, names, MappingProxyType(dict(arguments or {})), written)


def dag(name: str, *steps: Step, timeout: timedelta | None = None) -> Dag:
    """A workflow of `steps`; it stands at the top of a module. `timeout` is for all of it.

    Its errors are reported together, when it is compiled or first called.
    """
    if not isinstance(name, str):  # what collects workflows by name comes before what refuses
        message = f"the name of a graph is {type(name).__name__}, expected a text"
        raise WorkflowError("HF057", message, help='dag("nightly", step(…))')
    return Dag(name, steps, timeout, _calling(sys._getframe(1)))  # noqa: SLF001


def _calling(frame: FrameType) -> InPython:
    return InPython(frame.f_globals.get("__name__", ""), frame.f_code, frame.f_lasti)


class Dag(Workflow[..., Any]):
    """A workflow that is a graph. Its input: what its tasks need and no step gives.

    Its result is that of the step on which no other depends; are there several, an object of
    their results by id.
    """

    def __init__(
        self, name: str, steps: Iterable[Step], timeout: timedelta | None, written: WrittenAt
    ) -> None:
        # Not by the base: it reads annotations, which may name what the module defines later.
        self.name = name
        self.timeout = timeout
        self.steps = tuple(steps)
        self.written = written
        self.__module__ = written.module
        self.function = _Function(self)

    @classmethod
    def from_json(
        cls, document: str | Mapping[str, Any], tasks: Iterable[Task[..., Any]], *, file: str = ""
    ) -> Dag:
        """A graph from `{"workflow_id", "steps": [{"id", "type", "depends_on"}]}`.

        The format: docs/reference/dag.md.

        `type` is the name of one of `tasks`; `file` is what refusals call the document. Raises
        CompileErrors with all that is wrong.
        """
        from holdfast.compiler.graphs.documents import read_dag  # noqa: PLC0415 - only who reads JSON needs it

        module = _calling(sys._getframe(1)).module  # noqa: SLF001
        return read_dag(document, tasks, file, module)

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """The number of each step. `check_dag` refuses a value that is not an id."""
        numbered = enumerate(self.steps)
        return {one.id: number for number, one in numbered if isinstance(one.id, str)}

    @cached_property
    def sources(self) -> tuple[Mapping[str, Any], ...]:
        """The value of each parameter, by step; `FromStep` and `FromInput` stand in the values."""
        return tuple(map(_sources_of, self.steps))

    @cached_property
    def finals(self) -> tuple[int, ...]:
        """The steps on which no other depends."""
        awaited = {id_ for one in self.steps for id_ in one.depends_on}
        return tuple(number for number, one in enumerate(self.steps) if one.id not in awaited)

    @cached_property
    def inputs(self) -> Mapping[str, Input]:
        """The fields of the input, as the parameters that they fill are declared."""
        from holdfast.compiler.graphs.inputs import inputs_of  # noqa: PLC0415 - see `plan`

        return inputs_of(self)

    @cached_property
    def plan(self) -> Plan:
        """The order of the steps. Raises CompileErrors with everything that is refused."""
        # A module that only defines a graph needs no compiler.
        from holdfast.compiler.graphs.checks import check_dag  # noqa: PLC0415
        from holdfast.compiler.graphs.plan import arrange  # noqa: PLC0415

        check_dag(self)
        ids = self.ids
        return arrange([frozenset(ids[id_] for id_ in one.depends_on) for one in self.steps])


class _Function:
    """In place of a workflow's function: parameters, annotations, and a run as plain Python."""

    def __init__(self, graph: Dag) -> None:
        self._graph = graph
        self.__name__ = self.__qualname__ = graph.name
        self.__module__ = graph.written.module
        self.__doc__ = f"The graph {graph.name}."

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature(
            [
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=field.annotation,
                )
                for name, field in self._graph.inputs.items()
            ]
        )

    def __getattr__(self, name: str) -> Any:
        if name != "__annotations__":
            raise AttributeError(name)
        annotations = {name: field.annotation for name, field in self._graph.inputs.items()}
        return {**annotations, "return": self._result}

    @property
    def _result(self) -> Any:
        finals = self._graph.finals
        if len(finals) != 1:
            return dict[str, Any]
        return hints_of(self._graph.steps[finals[0]].task).get("return", Any)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        run = _Run(self._graph, bound.arguments, {})
        run.follow(self._graph.plan)
        finals = self._graph.finals
        if len(finals) == 1:
            return run.results[self._graph.steps[finals[0]].id]
        return {id_: run.results[id_] for id_ in (self._graph.steps[n].id for n in finals)}


@dataclass(frozen=True, slots=True)
class _Run:
    """A run as plain Python; side by side where a harness can do that."""

    graph: Dag
    given: Mapping[str, Any]
    results: dict[str, Any]

    def follow(self, plan: Plan) -> None:
        from holdfast.compiler.graphs.plan import Chain, Core, Fork, SingleStep  # noqa: PLC0415 - see `Dag.plan`

        match plan:
            case SingleStep(number):
                self._call(number)
            case Chain(parts):
                for part in parts:
                    self.follow(part)
            case Fork(branches):
                run_after([self._branch(branch) for branch in branches], [()] * len(branches))
            case Core(branches, after):
                run_after([self._branch(branch) for branch in branches], after)

    def _branch(self, plan: Plan) -> Callable[[], None]:
        return lambda: self.follow(plan)

    def _call(self, number: int) -> None:
        one, sources = self.graph.steps[number], self.graph.sources[number]
        values = {name: self._value(one, name, tree) for name, tree in sources.items()}
        self.results[one.id] = one.task(**values)

    def _value(self, one: Step, name: str, tree: Any) -> Any:
        if not references_in(tree):
            return one.task.boundary.parse_argument(name, tree)
        return filled(tree, self._read)

    def _read(self, source: FromStep | FromInput) -> Any:
        match source:
            case FromStep(id_):
                return self.results[id_]
            case FromInput(field):
                return self.given[field]


def _sources_of(one: Step) -> Mapping[str, Any]:
    """By its parameters; empty if `one.task` is not a task, which `check_dag` refuses."""
    if not isinstance(one.task, Task):
        return {}
    found: dict[str, Any] = {}
    for name in parameters_of(one.task):
        by_name = FromStep(name) if name in one.depends_on else FromInput(name)
        found[name] = one.arguments.get(name, by_name)
    return found


# Arguments: values with `FromStep` and `FromInput` in lists and dicts.


def references_in(tree: Any) -> list[FromStep | FromInput]:
    match tree:
        case FromStep() | FromInput():
            return [tree]
        case list() | tuple():
            return [found for item in tree for found in references_in(item)]
        case dict():
            return [found for item in tree.values() for found in references_in(item)]
        case _:
            return []


def filled(tree: Any, read: Callable[[FromStep | FromInput], Any]) -> Any:
    """`tree` with every reference replaced by what it stands for."""
    match tree:
        case FromStep() | FromInput():
            return read(tree)
        case list() | tuple():
            return [filled(item, read) for item in tree]
        case dict():
            return {key: filled(item, read) for key, item in tree.items()}
        case _:
            return tree


def parameters_of(task: Task[..., Any]) -> Mapping[str, inspect.Parameter]:
    return _signature_of(task.function).parameters


_signature_of: Final = lru_cache(maxsize=1024)(inspect.signature)


def hints_of(task: Task[..., Any]) -> dict[str, Any]:
    """The annotations of its parameters, and `return`; nothing when one cannot be read."""
    return _hints_of(task.function)


@lru_cache(maxsize=1024)
def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - what is wrong with it is refused when the graph is compiled
        return {}
