"""A graph of steps as data: the steps, what each depends on, and the values of its parameters.

`dag.py` makes workflows from it, and the compiler reads it. This module imports neither of them, so
that the two do not import each other.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any, Final, TypeAlias

from holdfast.api.tasks import Task
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FromStep:
    """A reference to the result of a step."""

    id: str


@dataclass(frozen=True, slots=True)
class FromInput:
    """A reference to a field of the input."""

    field: str


def from_step(id: str) -> FromStep:  # noqa: A002 - what the reader of a graph calls it
    """Refer, in `arguments`, to the result of a step on which this step depends."""
    return FromStep(str(id))


def from_input(field: str) -> FromInput:
    """Refer, in `arguments`, to the field of the input with this name."""
    return FromInput(str(field))


@dataclass(frozen=True, slots=True)
class InPython:
    """The call in Python that created a part of a graph: an instruction in a module's code."""

    module: str
    code: CodeType
    instruction: int


@dataclass(frozen=True, slots=True)
class InJson:
    """A place in a document, such as `/steps[2]`. `module` is the module that has read the
    document.
    """

    module: str
    file: str
    text: str
    location: str


WrittenAt: TypeAlias = InPython | InJson


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a graph, as `step` returns it.

    A compensation depends on the one step whose work it undoes.
    """

    id: str
    task: Task[..., Any]
    depends_on: tuple[str, ...]
    arguments: Mapping[str, Any]
    written: WrittenAt
    is_compensation: bool = False


class GraphModel:
    """The steps of a graph, in the order in which they were written.

    `compensations` are stored separately: they run only when the graph does not succeed.
    """

    def __init__(
        self, name: str, steps: Iterable[Step], timeout: timedelta | None, written: WrittenAt
    ) -> None:
        self.name = name
        self.timeout = timeout
        found = tuple(steps)
        # Accept any object here. `check_dag` refuses an object that is not a step, and its message
        # names the place.
        self.compensations = tuple(s for s in found if getattr(s, "is_compensation", False))
        self.steps = tuple(s for s in found if not getattr(s, "is_compensation", False))
        self.written = written

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Return the number of each step. `check_dag` refuses an id that is not a text."""
        numbered = enumerate(self.steps)
        return {one.id: number for number, one in numbered if isinstance(one.id, str)}

    @cached_property
    def sources(self) -> tuple[Mapping[str, Any], ...]:
        """Return for each step the values of its parameters, which may contain `FromStep` and
        `FromInput`.
        """
        return tuple(map(sources_of, self.steps))

    def compensations_of(self, number: int) -> list[Step]:
        """Return the compensations of a step."""
        undone = (self.steps[number].id,)
        return [one for one in self.compensations if one.depends_on == undone]

    @cached_property
    def finals(self) -> tuple[int, ...]:
        """Return the steps on which no other step depends."""
        awaited = {id_ for one in self.steps for id_ in one.depends_on}
        return tuple(number for number, one in enumerate(self.steps) if one.id not in awaited)


def sources_of(one: Step) -> Mapping[str, Any]:
    """Return the source of each parameter; {} if `one.task` is not a task, which `check_dag`
    refuses.
    """
    if not isinstance(one.task, Task):
        return {}
    if one.task.is_service:
        return one.arguments
    found: dict[str, Any] = {}
    for name in parameters_of(one.task):
        by_name = FromStep(name) if name in one.depends_on else FromInput(name)
        found[name] = one.arguments.get(name, by_name)
    return found


# `references_in` finds the references in the arguments of a step, and `filled` replaces them. Both
# must search the same containers: lists, tuples and dicts. Otherwise a reference would be found and
# never replaced.


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
    """Return `tree` with every reference replaced by its value."""
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
    """Return the annotations of the task's parameters, and of `return`; {} when one cannot be
    read.
    """
    return _hints_of(task.function)


@lru_cache(maxsize=1024)
def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 - what is wrong with it is refused when the graph is compiled
        return {}
