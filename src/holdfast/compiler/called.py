"""Errors of the expressions of a workflow that another workflow calls.

The problem
-----------
An expression that fails ends an execution with `States.QueryEvaluationError`. A caller that reads
the error of its child would see this name and a text of the engine, where Python has `IndexError`
and its own text.

So a workflow that another workflow of its module calls names the errors of its expressions, as a
`try` with a handler for them does; see `statements.named_failures`. The errors of its other
expressions have no name. The compiler computes them from the body of the child, `ChildFailures`,
and refuses a caller that reads them.

A caller in another module does not change the child: the definition of a workflow depends on its
own module, and on what that module uses, alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from holdfast.api.tools import Tools
from holdfast.api.workflows import Workflow
from holdfast.compiler.types.failures import is_own, is_own_name


def is_called(workflow: Workflow[..., Any]) -> bool:
    """Return True when a workflow of the same module names this one, itself or in a helper."""
    name = workflow.function.__module__
    module = sys.modules.get(name)
    callers = [] if module is None else [*vars(module).values()]
    return any(
        named.function is workflow.function
        for caller in callers
        if isinstance(caller, Workflow) and caller.function.__module__ == name
        for named in _named_by(caller.function)
    )


def _named_by(function: Callable[..., Any]) -> Iterator[Workflow[..., Any]]:
    pending: list[object] = [function]
    seen = set[int]()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        match one:
            case Workflow() as found:
                yield found
            case Tools(tasks=tasks):
                pending += tasks.values()
            case dict():
                pending += (value for value in one.values() if isinstance(value, Workflow))
            case FunctionType() if is_own_name(one.__module__):
                pending += _values_named(one)


def _values_named(function: FunctionType) -> Iterator[object]:
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in sorted(names):
        value = function.__globals__.get(name)
        yield value
        if isinstance(value, ModuleType) and is_own(value):
            yield from (vars(value).get(attribute) for attribute in sorted(names))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


_Compute: TypeAlias = "Callable[[ChildFailures, Workflow[..., Any]], frozenset[str]]"


class ChildFailures:
    """The errors without a name that the expressions of called workflows raise. `compute` lowers
    a child, with this object for the workflows that the child calls.
    """

    def __init__(self, compute: _Compute) -> None:
        self._compute = compute
        self._known: dict[object, frozenset[str]] = {}
        self._open: list[object] = []
        #: The least depth of an open workflow that a called workflow calls again.
        self._cut: int | None = None

    def __call__(self, workflow: Workflow[..., Any], /) -> frozenset[str]:
        key = workflow.function
        if key in self._open:
            # The computation that is open for this workflow adds its errors.
            depth = self._open.index(key)
            self._cut = depth if self._cut is None else min(self._cut, depth)
            return frozenset()
        if key not in self._known:
            return self._computed(workflow, key)
        return self._known[key]

    def _computed(self, workflow: Workflow[..., Any], key: object) -> frozenset[str]:
        depth = len(self._open)
        self._open.append(key)
        try:
            found = self._compute(self, workflow)
        finally:
            self._open.pop()
        if self._cut is not None and self._cut >= depth:
            self._cut = None
        if self._cut is None:
            self._known[key] = found
        return found
