"""The tasks and workflows of a deployment, collected from the modules that define them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from itertools import chain
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias, TypeVar

from holdfast.api.limits import Limit, ServiceLimits
from holdfast.api.step_types import StepType
from holdfast.api.surface import Task, Workflow
from holdfast.errors import WorkflowError
from holdfast.lazy_dataclass import dataclass
from holdfast.limits import REQUEST_SUFFIX

D = TypeVar("D", Task[..., Any], Workflow[..., Any])


#: The limits of all tasks, or of all workflows, by the names of these.
DeclaredLimits: TypeAlias = Mapping[str, tuple[Limit, ...]]


@dataclass(frozen=True, slots=True)
class Registry:
    """All tasks and workflows of a deployment, by their names.

    Tasks of several modules may have the same name; a workflow calls the one that its source names.
    `tasks` has the first of them, and `namesakes` all of them, by module and name. `step_types` are
    the kinds of steps that the modules register.
    """

    tasks: Mapping[str, Task[..., Any]]
    workflows: Mapping[str, Workflow[..., Any]]
    services: DeclaredLimits = field(default_factory=dict)
    namesakes: Mapping[tuple[str, str], Task[..., Any]] = field(default_factory=dict)
    step_types: tuple[StepType, ...] = ()

    def task(self, name: str, module: str = "") -> Task[..., Any] | None:
        """Return the task with this name, from the modules or from Python's library. `module`
        decides between several tasks with the name.
        """
        found = self.namesakes.get((module, name)) or self.tasks.get(name)
        if found is None:
            from holdfast.api.library import library_task  # noqa: PLC0415 - few tasks are in it

            found = library_task(name)
        return found

    def called(self, name: str) -> list[Task[..., Any]]:
        """Return every task of this name."""
        found = [task for (_, one), task in self.namesakes.items() if one == name]
        task = self.task(name)
        return found or ([] if task is None else [task])

    def has_namesakes(self, name: str) -> bool:
        return len(self.called(name)) > 1

    def tasks_of(
        self, module: str, task_modules: Mapping[str, str]
    ) -> Mapping[str, Task[..., Any]]:
        """Return the tasks by the names under which a workflow of the module calls them."""
        if not self.namesakes:
            return self.tasks
        found = {name: self.task(name, task_modules.get(name, module)) for name in self.tasks}
        return {name: task for name, task in found.items() if task is not None}

    def modules_of_groups(self) -> dict[str, tuple[str, ...]]:
        """Return the groups of the tasks, and the modules that define the tasks of each."""
        found: dict[str, set[str]] = {}
        for task in (*self.tasks.values(), *self.namesakes.values()):
            if task.group is not None:
                found.setdefault(task.group, set()).add(task.function.__module__)
        return {group: tuple(sorted(modules)) for group, modules in sorted(found.items())}

    def limits(self) -> tuple[DeclaredLimits, DeclaredLimits]:
        """Return the limits of the tasks and services, and those of the workflows.

        Raises WorkflowError HF068 when two different limits have the same name: the stack has one
        limit for each name.
        """
        of_task = {name: task.limits for name, task in self.tasks.items() if task.limits}
        of_task |= self.services
        of_workflow = {name: one.limits for name, one in self.workflows.items() if one.limits}
        known: dict[str, Limit] = {}
        for limit in chain.from_iterable((*of_task.values(), *of_workflow.values())):
            bare = replace(limit, key=None)
            if known.setdefault(limit.name, bare) != bare:
                raise WorkflowError(
                    "HF068",
                    f"the limit {limit.name!r} is declared twice, with different values",
                    help="declare it once, in a module of its own, and import it",
                )
        return of_task, of_workflow

    @classmethod
    def from_modules(cls, names: Iterable[str]) -> Registry:
        """Import the modules and collect the tasks and workflows in their namespaces.

        Raises WorkflowError: HF070 when a module is missing, HF071 when two objects share a name.
        """
        modules = [_import(name) for name in names]
        workflows = _by_name(_collect(modules, Workflow))
        tasks = _collect(modules, Task)
        namesakes = _namesakes(tasks)
        return cls(
            tasks=MappingProxyType(
                _by_name(one for one in tasks if _key(one) not in namesakes)
                | {one.name: one for one in reversed(namesakes.values())}
            ),
            workflows=MappingProxyType(workflows),
            services=MappingProxyType(_services(modules)),
            namesakes=MappingProxyType(namesakes),
            step_types=_step_types(modules),
        )

    def require_known(
        self,
        name: str,
        tasks: Iterable[str],
        workflows: Mapping[str, str],
        task_modules: Mapping[str, str],
    ) -> None:
        """Check that the modules have every task and workflow that `name` calls, according to its
        map. `task_modules` gives the modules of tasks that are not in the workflow's own module.

        Raises WorkflowError HF103 when one is missing: the execution would wait for that function
        for ever.
        """
        for task in tasks:
            module = task_modules.get(task, self.workflows[name].function.__module__)
            is_other = self.has_namesakes(task) and (module, task) not in self.namesakes
            if is_other or self.task(task) is None:
                raise WorkflowError(
                    "HF103",
                    f"workflow {name} calls the task {task}, which is in none of the modules",
                    help="name the module that defines it, too",
                )
        for workflow, place in workflows.items():
            if workflow not in self.workflows:
                module = place.partition(":")[0]
                raise WorkflowError(
                    "HF103",
                    f"workflow {name} calls {workflow}, which is in none of the modules",
                    help=f"name its module, too: `{module}`",
                )


def _import(name: str) -> ModuleType:
    """Import a module by its name. A name may begin with a digit (`01_signup`), although no
    `import` statement can name such a module.
    """
    if all(f"_{part}".isidentifier() for part in name.split(".")):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    raise WorkflowError("HF070", f"module {name} cannot be found", help=_help_for(name))


def _help_for(name: str) -> str:
    """Return the help for a missing module. Many users give the name of a file instead of a
    module.
    """
    from pathlib import Path  # noqa: PLC0415  (a worker that starts needs no help)

    is_file, path = name.endswith(".py") or "/" in name, Path(name)
    if path.is_file() and (path.is_absolute() or ".." in path.parts):
        return f"give the command in the folder of the file: cd {path.parent}"
    module = name.removesuffix(".py").strip("./").replace("/", ".")
    stem = name.removesuffix(".py").rpartition("/")[2]
    if is_file and "." in stem.strip("."):
        return f"a module has no dot in its name: rename the file to `{stem.replace('.', '_')}.py`"
    if is_file and module:
        return f"name the module: `{module}`"
    return "name a module as `import` does, from the project's folder: `package.module`"


def _collect(modules: Iterable[ModuleType], kind: type[D]) -> list[D]:
    found: list[D] = []
    for module in modules:
        for declared in vars(module).values():
            value = declared.task if isinstance(declared, StepType) else declared
            # Skip an action of a service. The engine calls the service itself, so no function of
            # the deployment belongs to the action.
            if isinstance(value, kind) and not value.is_service:
                found.append(value)
    return found


def _by_name(declared: Iterable[D]) -> dict[str, D]:
    """Return the first object with each name. Raises WorkflowError HF071 when another function has
    the name, too.

    `task.options(...)` is the same function with other settings, not a second task.
    """
    found: dict[str, D] = {}
    for value in declared:
        other = found.setdefault(value.name, value)
        if other.function is not value.function:
            kind = "task" if isinstance(value, Task) else "workflow"
            raise WorkflowError(
                "HF071",
                f"two {kind}s are called {value.name}: {_place(other)} and {_place(value)}",
                help=f'rename one: @{kind}(name="...")',
            )
    return found


def _namesakes(tasks: Iterable[Task[..., Any]]) -> dict[tuple[str, str], Task[..., Any]]:
    """Return the tasks that have the same name as a task of another module.

    Limits and batches are by name, so a task with one of these must have a name of its own:
    `_by_name` refuses it otherwise.
    """
    modules: dict[str, set[str]] = {}
    bound: set[str] = set()
    for task in tasks:
        modules.setdefault(task.name, set()).add(task.function.__module__)
        if task.limits or task.batch is not None:
            bound.add(task.name)
    found: dict[tuple[str, str], Task[..., Any]] = {}
    for task in tasks:
        if len(modules[task.name]) > 1 and task.name not in bound:
            _by_name([found.setdefault(_key(task), task), task])
    return found


def _key(task: Task[..., Any]) -> tuple[str, str]:
    return task.function.__module__, task.name


def require_one_receiver(starts: Mapping[str, str]) -> None:
    """Refuse two workflows that one request starts: a request has one reply. `starts` has, by
    workflow, the event or request that starts it.

    Raises WorkflowError HF158.
    """
    for name, received in starts.items():
        event = received.removesuffix(REQUEST_SUFFIX)
        others = (one for one in starts if one != name and starts[one] in {event, received})
        other = next(others, None) if received != event else None
        if other is not None:
            raise WorkflowError(
                "HF158",
                f"the request {event!r} starts {name}, and {other} starts on the same name",
                help=f'@workflow(key="…", starts_on="{other}.{event}") for {other}, and '
                f'send("{other}.{event}", …) in {name}: docs/how-to/talk.md',
            )


def _services(modules: Iterable[ModuleType]) -> dict[str, tuple[Limit, ...]]:
    values = chain.from_iterable(vars(module).values() for module in modules)
    return {value.action: value.limits for value in values if isinstance(value, ServiceLimits)}


def _step_types(modules: Iterable[ModuleType]) -> tuple[StepType, ...]:
    values = chain.from_iterable(vars(module).values() for module in modules)
    return tuple(value for value in values if isinstance(value, StepType))


def _place(declared: Task[..., Any] | Workflow[..., Any]) -> str:
    return f"{declared.function.__module__}.{declared.function.__qualname__}"
