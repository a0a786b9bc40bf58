"""Workflows as graphs: steps, and what each step depends on.

    nightly = dag(
        "nightly",
        step("extract", extract),
        step("clean", clean, depends_on=["extract"]),
    )

If a parameter of a task has the name of a step on which its step depends, it gets the result of
that step. Any other parameter is a field of the input. `arguments` can change that.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any

from holdfast.api.branches import run_after
from holdfast.api.graph_model import (
    FromInput,
    FromStep,
    GraphModel,
    InPython,
    Step,
    WrittenAt,
    filled,
    hints_of,
    references_in,
    sources_of,
)
from holdfast.api.scopes import Undo, compensating
from holdfast.api.step_types import StepType
from holdfast.api.tasks import Task
from holdfast.api.workflows import NO_SEARCH, SearchAttributes, Workflow
from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from holdfast.compiler.graphs.inputs import Input
    from holdfast.compiler.graphs.plan import Plan


def step(
    id: str,  # noqa: A002 - what the reader of a graph calls it
    task: Task[..., Any],
    *,
    depends_on: list[str] | tuple[str, ...] = (),
    arguments: Mapping[str, object] | None = None,
) -> Step:
    """Return a step that runs `task` when all steps in `depends_on` have succeeded. These may be
    defined later.

    `arguments` gives values by the names of parameters; `from_step` and `from_input` can be used in
    them.
    """
    # Without a type checker a caller may pass one id as a text. Put it into a tuple, because its
    # letters would otherwise count as ids.
    names = (depends_on,) if isinstance(depends_on, str) else tuple(depends_on)
    written = _calling(sys._getframe(1))  # noqa: SLF001
    return Step(id, task, names, MappingProxyType(dict(arguments or {})), written)


def dag(
    name: str,
    *steps: Step,
    timeout: timedelta | None = None,
    search: SearchAttributes = NO_SEARCH,
) -> Dag:
    """Return a workflow of `steps`. Call it at the top level of a module. `timeout` limits the
    whole execution. `search` names fields of the input by which executions are found.

    All errors of a graph are reported together, when it is compiled or first called.
    """
    # Refuse the name here. Modules collect their workflows by name before the graph is checked, and
    # could not handle another value.
    if not isinstance(name, str):
        message = f"the name of a graph is {type(name).__name__}, expected a text"
        raise WorkflowError("HF057", message, help='dag("nightly", step(…))')
    made = Dag(name, steps, timeout, _calling(sys._getframe(1)))  # noqa: SLF001
    if search:
        from holdfast.api.searching import require_search  # noqa: PLC0415 - few graphs need it

        made.search = require_search(name, search)
    return made


def _calling(frame: FrameType) -> InPython:
    return InPython(frame.f_globals.get("__name__", ""), frame.f_code, frame.f_lasti)


class Dag(GraphModel, Workflow[..., Any]):
    """A workflow that is a graph. Its input has the values that its tasks need and no step gives.

    Its result is that of the step on which no other step depends. If there are several such steps,
    it is an object with their results by id.
    """

    def __init__(
        self, name: str, steps: Iterable[Step], timeout: timedelta | None, written: WrittenAt
    ) -> None:
        # Do not call the constructor of `Workflow`. It reads annotations, which may name objects
        # that the module defines only later.
        GraphModel.__init__(self, name, steps, timeout, written)
        self.__module__ = written.module
        self.function = _Function(self)

    @classmethod
    def of(cls, model: GraphModel) -> Dag:
        return cls(model.name, (*model.steps, *model.compensations), model.timeout, model.written)

    @classmethod
    def from_json(
        cls,
        document: str | Mapping[str, Any],
        tasks: Iterable[Task[..., Any] | StepType],
        *,
        file: str = "",
    ) -> Dag:
        """Return a graph from `{"workflow_id", "steps": [{"id", "type", "depends_on"}]}`.

        The format: docs/reference/dag.md.

        `type` is the name of one of `tasks`, or a kind of step: `service_call` and `notification`
        run the task that has the name of the step, `human_approval` asks a person, and a `StepType`
        in `tasks` adds a kind. `file` is the name of the document in refusals. Raises CompileErrors
        with all errors.
        """
        from holdfast.compiler.graphs.documents import read_graph  # noqa: PLC0415 - only who reads JSON needs it

        module = _calling(sys._getframe(1)).module  # noqa: SLF001
        return cls.of(read_graph(document, tasks, file, module))

    @cached_property
    def inputs(self) -> Mapping[str, Input]:
        """Return the fields of the input, with the types of the parameters that get them."""
        from holdfast.compiler.graphs.inputs import inputs_of  # noqa: PLC0415 - see `plan`

        return inputs_of(self)

    @cached_property
    def plan(self) -> Plan:
        """Return the order of the steps. Raises CompileErrors with all refusals."""
        # Imported here because a module that only defines a graph does not need the compiler, whose
        # import takes time.
        from holdfast.compiler.graphs.checks import check_dag  # noqa: PLC0415
        from holdfast.compiler.graphs.plan import arrange  # noqa: PLC0415

        check_dag(self)
        ids = self.ids
        return arrange([frozenset(ids[id_] for id_ in one.depends_on) for one in self.steps])


class _Function:
    """Replaces the function of a workflow: it has parameters and annotations, and runs the graph in
    plain Python.

    The reference to the graph is weak. The compiler keeps the signatures of a thousand functions,
    and would otherwise keep a thousand graphs that were registered at run time.
    """

    def __init__(self, graph: Dag) -> None:
        self._weak = weakref.ref(graph)
        self.__name__ = self.__qualname__ = graph.name
        self.__module__ = graph.written.module
        self.__doc__ = f"The graph {graph.name}."

    @property
    def _graph(self) -> Dag:
        graph = self._weak()
        assert graph is not None
        return graph

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
        with compensating() as undo:
            run = _Run(self._graph, bound.arguments, {}, undo)
            run.follow(self._graph.plan)
        finals = self._graph.finals
        if len(finals) == 1:
            return run.results[self._graph.steps[finals[0]].id]
        return {id_: run.results[id_] for id_ in (self._graph.steps[n].id for n in finals)}


@dataclass(frozen=True, slots=True)
class _Run:
    """A run in plain Python. Steps run concurrently if the harness can do that."""

    graph: Dag
    given: Mapping[str, Any]
    results: dict[str, Any]
    undo: Undo

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
        self.results[one.id] = _called(one.task, self._values(one, sources))
        for compensation in self.graph.compensations_of(number):
            self.undo(compensation.task, **self._values(compensation, sources_of(compensation)))

    def _values(self, one: Step, sources: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._value(one, name, tree) for name, tree in sources.items()}

    def _value(self, one: Step, name: str, tree: Any) -> Any:
        if not references_in(tree) and not one.task.is_service:
            return one.task.boundary.parse_argument(name, tree)
        return filled(tree, self._read)

    def _read(self, source: FromStep | FromInput) -> Any:
        match source:
            case FromStep(id_):
                return self.results[id_]
            case FromInput(field):
                return self.given[field]


def _called(task: Task[..., Any], values: dict[str, Any]) -> Any:
    if task.is_service:
        service: Any = task
        return service.perform(values)
    return task(**values)
