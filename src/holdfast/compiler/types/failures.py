"""Error classes, and their names in a state machine."""

from __future__ import annotations

import builtins
import decimal
import json
import statistics
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any, Final

from holdfast.api.surface import WaitTimeout
from holdfast.asl import error_names

#: The modules with the errors of the language. Only their classes count as known, because other
#: modules of Holdfast are not imported in every process.
_SURFACE: Final = "holdfast.api."
#: Errors of Python's library that a handler for one of its builtin errors catches, too. Functions
#: that are steps raise them. This module imports them, so each process knows them.
_LIBRARY_ERRORS: Final = frozenset(
    {
        decimal.DivisionByZero,
        decimal.InvalidOperation,
        json.JSONDecodeError,
        statistics.StatisticsError,
    }
)
_LIBRARY_ROOTS: Final = tuple(
    path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "purelib", "platlib")
)


def names_of(classes: Iterable[type[BaseException]], world: ErrorClasses) -> tuple[str, ...]:
    """Return the error names that a handler for `classes` catches; States.ALL for Exception
    itself.
    """
    names: dict[str, None] = {}
    for cls in classes:
        if cls is Exception:
            return (error_names.ALL,)
        for known in (cls, *world.subclasses(cls)):
            if known is WaitTimeout:
                names[error_names.TIMEOUT] = None
            names[known.__name__] = None
    return tuple(names)


class ErrorClasses:
    """The error classes that can occur in a workflow: a state machine compares names, not classes.

    The definition must not depend on the modules that a process happens to have imported. So a
    subclass counts only if it is a builtin, or belongs to the language, or is one of a few of
    Python's library, or is found in the author's own modules: that of the workflow, and modules
    that it imports directly or indirectly, without libraries.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._start = sys.modules.get(function.__module__)
        #: A process that has imported many libraries has thousands of error classes.
        self._subclasses: dict[type[BaseException], tuple[type[BaseException], ...]] = {}

    @cached_property
    def _modules(self) -> dict[str, ModuleType]:
        return {} if self._start is None else _own_modules(self._start)

    @cached_property
    def _named(self) -> frozenset[int]:
        return frozenset(
            id(value)
            for module in self._modules.values()
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, BaseException)
        )

    def subclasses(self, cls: type[BaseException]) -> tuple[type[BaseException], ...]:
        """Return the known subclasses, sorted by name."""
        known = self._subclasses.get(cls)
        if known is None:
            found = {one.__name__: one for one in _descendants(cls) if self._knows(one)}
            known = self._subclasses[cls] = tuple(found[name] for name in sorted(found))
        return known

    def _knows(self, cls: type[BaseException]) -> bool:
        return (
            cls.__module__ == builtins.__name__
            or cls in _LIBRARY_ERRORS
            or cls.__module__.startswith(_SURFACE)
            or cls.__module__ in self._modules
            or id(cls) in self._named
        )


def _descendants(cls: type[BaseException]) -> Iterator[type[BaseException]]:
    # In the order of a recursive walk.
    pending = cls.__subclasses__()[::-1]
    while pending:
        child = pending.pop()
        yield child
        pending += child.__subclasses__()[::-1]


def _own_modules(start: ModuleType) -> dict[str, ModuleType]:
    found: dict[str, ModuleType] = {}
    seen: set[int] = set()
    pending = [start]
    while pending:
        module = pending.pop()
        if module.__name__ in found:
            continue
        found[module.__name__] = module
        for value in vars(module).values():
            owner = value if isinstance(value, ModuleType) else _module_of(value)
            if owner is not None and id(owner) not in seen:
                seen.add(id(owner))
                if is_own(owner):
                    pending.append(owner)
    return found


def _module_of(value: object) -> ModuleType | None:
    name = getattr(value, "__module__", None)
    return sys.modules.get(name) if isinstance(name, str) else None


def is_own(module: ModuleType) -> bool:
    """Return True for a module of the author: neither a library nor a part of Holdfast."""
    file = getattr(module, "__file__", None)
    name = module.__name__
    if file is None or name == "holdfast" or name.startswith("holdfast."):
        return False
    return not file.startswith(_LIBRARY_ROOTS)


def is_own_name(name: str) -> bool:
    """Return True when a module with this name belongs to the author."""
    module = sys.modules.get(name)
    return module is not None and is_own(module)


def has_plain_text(cls: type[BaseException]) -> bool:
    """Return True when `str(cls(text))` is `text`. The check does not run the author's code."""
    makers = (cls.__new__, cls.__init__, cls.__str__)
    if any(isinstance(maker, FunctionType) for maker in makers):
        return False
    try:
        return str(cls("x")) == "x"
    except TypeError:
        # Some classes, such as UnicodeDecodeError and ExceptionGroup, cannot be created from a text
        # alone.
        return False
