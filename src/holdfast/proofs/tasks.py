"""The author's tasks that may run twice: their declarations, and hints in their code."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Final

from holdfast.api.surface import Task

_KEY: Final = "idempotency_key"


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The facts about a task. `uses_key`: its function, or a helper in its module, reads the
    idempotency key. `limits` are the limits and the batch of the task, as text.
    """

    name: str
    is_pure: bool
    is_idempotent: bool
    uses_key: bool
    limits: tuple[str, ...] = ()

    @property
    def may_be_repeated(self) -> bool:
        return self.is_pure or self.is_idempotent or self.uses_key


def facts_of_tasks(tasks: Mapping[str, Task[..., Any]]) -> Mapping[str, TaskFacts]:
    """Return the facts about each task, by the task's name."""
    return {
        name: TaskFacts(
            name=name,
            is_pure=task.is_pure,
            is_idempotent=bool(getattr(task, "idempotent", False)),
            uses_key=_uses_key(task.batch_function or task.function),
            limits=_limits_of(task),
        )
        for name, task in tasks.items()
    }


def _limits_of(task: Task[..., Any]) -> tuple[str, ...]:
    found = [str(limit) for limit in task.limits]
    if task.batch is not None:
        found.append(f"batches of {task.batch.max}, within {task.batch.wait.total_seconds():g} s")
    return tuple(found)


def _uses_key(function: Any) -> bool:
    """Return True when the function reads the idempotency key, directly or in functions of its
    module that it names.
    """
    start = inspect.unwrap(function) if callable(function) else function
    pending, seen = [start], set[CodeType]()
    while pending:
        current = pending.pop()
        if not isinstance(current, FunctionType) or current.__code__ in seen:
            continue
        seen.add(current.__code__)
        for name in _names(current.__code__):
            if name == _KEY:
                return True
            helper = current.__globals__.get(name)
            if isinstance(helper, FunctionType) and helper.__module__ == start.__module__:
                pending.append(helper)
    return False


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that the code, and the functions inside of it, read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
