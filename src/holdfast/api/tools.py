"""A choice of tasks, or of workflows, by name: the tools that a language model, or a caller, may
select.

    TOOLS = choice(get_weather, get_price)

    @workflow
    def answer(question: str) -> str:
        call = ask_model(question)
        result = TOOLS[call.name](**call.arguments)

In a state machine it is a Choice over Tasks, each with its own types, retries and time-outs. An
unknown name is a KeyError, an error of the expression. Arguments that do not fit the annotations of
the task are InvalidArguments, as for any task. A choice with workflows takes arguments that are
written out, `CHILDREN[kind](order)`; each child gets them as in a call of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from holdfast.api.boundary import Misfit
from holdfast.api.harness import harness
from holdfast.api.task_errors import InvalidArguments
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.errors import WorkflowError


class Tools(Mapping[str, Callable[..., Any]]):
    """The tasks and workflows of a `choice`, by their names."""

    def __init__(self, tasks: tuple[Task[..., Any] | Workflow[..., Any], ...]) -> None:
        for one in tasks:
            # Not every author checks the types before the first run.
            if not isinstance(one, Task | Workflow):
                named = getattr(one, "name", one)
                raise WorkflowError(
                    "HF063",
                    f"a choice is of tasks or workflows, and {named} is neither",
                    help=f'if name == "{named}": found = {named}(…)',
                )
        self.tasks: Mapping[str, Task[..., Any] | Workflow[..., Any]] = {
            task.name: task for task in tasks
        }
        if not tasks or len(self.tasks) < len(tasks):
            names = ", ".join(task.name for task in tasks) or "no task"
            raise WorkflowError(
                "HF063",
                f"a choice needs tasks with different names, and this has {names}",
                help="choice(get_weather, get_price)",
            )

    def __getitem__(self, name: str) -> Callable[..., Any]:
        task = self.tasks[name]

        def call(*given: Any, **arguments: Any) -> Any:
            if isinstance(task, Workflow):
                return task(*given, **arguments)
            names = inspect.signature(task.function).parameters
            return _call(task, {**dict(zip(names, given, strict=False)), **arguments})

        return call

    def __iter__(self) -> Iterator[str]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)


def _call(task: Task[..., Any], arguments: dict[str, Any]) -> Any:
    stand_in = harness.get()
    if stand_in is not None:
        parameters = inspect.signature(task.function).parameters.values()
        defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
        return stand_in.run_task(task, {**defaults, **arguments})
    try:
        values = task.boundary.parse_arguments(arguments)
    except Misfit as misfit:
        raise InvalidArguments(f"{task.name}({misfit})") from None
    return task.function(**values)


def choice(*tasks: Task[..., Any] | Workflow[..., Any]) -> Tools:
    """Return tasks or workflows of which a workflow calls one by its name:
    `TOOLS[name](**arguments)`.
    """
    return Tools(tasks)
