"""`parallel`, `first` and `each`: `ast` -> the action and the type of its result."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.dsl.context import Expression, LocalFunction
from holdfast.dsl.expressions.expressions import Expressions
from holdfast.dsl.expressions.query import Binary, Constant, Query
from holdfast.dsl.ir import Action, Block, RunEach, RunFirst, RunParallel
from holdfast.dsl.steps.batches import in_batches
from holdfast.dsl.steps.step_arguments import Count, StepRefused, refuse, require_count
from holdfast.dsl.surface import Task, Workflow
from holdfast.dsl.types.types import (
    INT,
    NONE,
    REFUSED,
    ListOf,
    TupleOf,
    Type,
    element_of,
    is_refused,
    join,
    join_all,
)


@dataclass(frozen=True, slots=True)
class Branch:
    """The body of a branch, the ASL variables of its parameters, and what it returns."""

    body: Block
    parameters: tuple[str, ...]
    result: Type


#: Lowers a `lambda` or a `def` whose parameters have these types.
BranchLowering = Callable[[Expressions, ast.Lambda | ast.FunctionDef, tuple[Type, ...]], Branch]


@dataclass(frozen=True, slots=True)
class Branching:
    expressions: Expressions
    lower_branch: BranchLowering

    def parallel(self, node: ast.Call, found: dict[str, Any]) -> tuple[Action, Type]:
        branches = self._branches(node, "parallel", found)
        bodies = tuple(branch.body for branch in branches)
        if "at_least" not in found:
            results = tuple(branch.result for branch in branches)
            return RunParallel(bodies, None, None), TupleOf(results)
        count = Count("at_least", 1, len(branches))
        needed = require_count(self.expressions, found["at_least"], count)
        number = self.expressions.lower(found["at_least"])
        tolerated = Expression(_fewer(len(branches), number.query), INT, number.fails)
        results = tuple(join(branch.result, NONE) for branch in branches)
        return RunParallel(bodies, needed, tolerated), TupleOf(results)

    def first(self, node: ast.Call, found: dict[str, Any]) -> tuple[Action, Type]:
        branches = self._branches(node, "first", found)
        action = RunFirst(tuple(branch.body for branch in branches))
        return action, join_all(branch.result for branch in branches)

    def each(self, found: dict[str, Any]) -> tuple[Action, Type]:
        items = self.expressions.iterable(found["items"])
        function = self._function(found["function"], 1)
        if is_refused(items.type):
            raise StepRefused
        size = self._count(found, Count("batch", 1))
        if size is not None:
            items = in_batches(items, size)
        element = element_of(items.type) or REFUSED
        branch = self.lower_branch(self.expressions, function, (element,))
        concurrency = self._count(found, Count("concurrency", 0))
        tolerated = self._count(found, Count("tolerate", 0))
        result = branch.result if tolerated is None else join(branch.result, NONE)
        action = RunEach(items, branch.parameters[0], branch.body, concurrency, tolerated)
        return action, ListOf(result)

    def _count(self, found: dict[str, Any], count: Count) -> Expression | None:
        node = found.get(count.name)
        return None if node is None else require_count(self.expressions, node, count)

    def _branches(self, node: ast.Call, name: str, found: dict[str, Any]) -> list[Branch]:
        nodes: tuple[ast.expr, ...] = found.get("branches", ())
        if not nodes:
            help_ = f"{name}(lambda: a(), lambda: b())"
            raise refuse(self.expressions, node, "HF008", f"{name}() needs branches", help_)
        functions = [self._function(branch, 0) for branch in nodes]
        return [self.lower_branch(self.expressions, function, ()) for function in functions]

    def _function(self, node: ast.expr, parameters: int) -> ast.Lambda | ast.FunctionDef:
        """The function of a branch; a bare task or workflow stands for its call."""
        unit = self.expressions.unit
        found: ast.Lambda | ast.FunctionDef | None = None
        match node:
            case ast.Lambda():
                found = node
            case ast.Name(id=name) if self.expressions.scope.is_local(name):
                entry = self.expressions.environment.entries.get(name)
                found = entry.node if isinstance(entry, LocalFunction) else None
            case _ if isinstance(declared := unit.outside(_without_options(node)), Task | Workflow):
                _require_fit(self.expressions, node, declared.function, parameters)
                # The same lambda whenever this is lowered again: scopes belong to nodes.
                found = unit.made.setdefault(node, _calling(node, parameters))
        if found is not None and _takes(found.args, parameters):
            return found
        raise refuse(
            self.expressions,
            node,
            "HF007",
            "a branch is a lambda, a local `def`, a task or a workflow "
            f"with {'one parameter' if parameters else 'no parameters'}",
            _as_branch(unit.text(node), found, parameters),
        )


def _as_branch(text: str, found: ast.AST | None, parameters: int) -> str:
    """What the author may type instead; an expression becomes what the lambda gives."""
    if parameters:
        return "lambda item: pack(item)"
    return f"lambda: {text}" if found is None else "lambda: charge(order.id)"


def _without_options(node: ast.expr) -> ast.expr:
    """`charge.options(…)` -> `charge`."""
    match node:
        case ast.Call(func=ast.Attribute(value=task, attr="options")):
            return task
        case _:
            return node


def _require_fit(
    expressions: Expressions, node: ast.expr, function: Callable[..., Any], parameters: int
) -> None:
    signature = inspect.signature(function)
    try:
        signature.bind(*[None] * parameters)
    except TypeError as error:
        text = expressions.unit.text(node)
        help_ = f"lambda{' item' if parameters else ''}: {text}({', '.join(signature.parameters)})"
        message = f"`{text}` alone is no branch here: {error}"
        raise refuse(expressions, node, "HF007", message, help_) from None


def _fewer(total: int, number: Query) -> Query:
    match number:
        case Constant(int(value)):
            return Constant(total - value)
        case _:
            return Binary("-", Constant(total), number)


def _takes(arguments: ast.arguments, parameters: int) -> bool:
    others = (
        *arguments.kwonlyargs,
        *arguments.defaults,
        *(extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None),
    )
    return not others and len(arguments.posonlyargs) + len(arguments.args) == parameters


def _calling(task: ast.expr, parameters: int) -> ast.Lambda:
    """`pack` -> `lambda item: pack(item)`, standing where `pack` stands."""
    names = ["item"] * parameters
    values = [ast.copy_location(ast.Name(name, ast.Load()), task) for name in names]
    arguments: list[ast.expr] = [*values]
    call = ast.copy_location(ast.Call(task, arguments, []), task)
    taken = [ast.copy_location(ast.arg(name), task) for name in names]
    signature = ast.arguments([], taken, None, [], [], None, [])
    return ast.copy_location(ast.Lambda(signature, call), task)
