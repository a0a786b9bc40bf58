"""`parallel`, `first` and `each`: from `ast` to the action and the type of its result."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

from holdfast.api.surface import Task, Workflow
from holdfast.compiler.context import LocalFunction, TypedQuery
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import Binary, Constant, FunctionCall, QueryTree
from holdfast.compiler.ir import Action, RunEach, RunFirst, RunParallel, StatementBlock
from holdfast.compiler.steps.batches import in_batches
from holdfast.compiler.steps.helpers import is_helper
from holdfast.compiler.steps.step_arguments import (
    Count,
    StepRefused,
    at_most,
    refuse,
    require_count,
)
from holdfast.compiler.types.types import (
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

RETURN_EXCEPTIONS: Final = "return_exceptions"


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: its body, the ASL variables of its parameters, and the type of its result."""

    body: StatementBlock
    parameters: tuple[str, ...]
    result: Type


#: A function that lowers the body of a branch: a `lambda` or a `def`, whose parameters have these
#: types. With True the branch returns its error instead of raising it.
BranchLowering = Callable[[Expressions, ast.Lambda | LocalFunction, tuple[Type, ...], bool], Branch]


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
        tolerated = _fewer(Constant(len(branches)), number)
        results = tuple(join(branch.result, NONE) for branch in branches)
        return RunParallel(bodies, needed, tolerated), TupleOf(results)

    def first(self, node: ast.Call, found: dict[str, Any]) -> tuple[Action, Type]:
        branches = self._branches(node, "first", found)
        action = RunFirst(tuple(branch.body for branch in branches))
        return action, join_all(branch.result for branch in branches)

    def each(self, node: ast.Call, found: dict[str, Any]) -> tuple[Action, Type]:
        items = self.expressions.iterable(found["items"])
        function = self._function(found["function"], 1)
        if is_refused(items.type):
            raise StepRefused
        size = self._count(found, Count("batch", 1))
        if size is not None:
            items = in_batches(items, size)
        element = element_of(items.type) or REFUSED
        returns_errors = self._returns_errors(node, found)
        branch = self.lower_branch(self.expressions, function, (element,), returns_errors)
        concurrency = self._count(found, Count("concurrency", 0))
        needed, tolerated = self._quorum(node, found, items)
        result = branch.result if tolerated is None else join(branch.result, NONE)
        action = RunEach(items, branch.parameters[0], branch.body, concurrency, needed, tolerated)
        return action, ListOf(result)

    def _quorum(
        self, node: ast.Call, found: dict[str, Any], items: TypedQuery
    ) -> tuple[TypedQuery | None, TypedQuery | None]:
        """Return how many calls of `each` must succeed, and how many may fail."""
        if "at_least" not in found:
            return None, self._count(found, Count("tolerate", 0))
        if "tolerate" in found:
            message = "with at_least all that is not needed may fail; tolerate has nothing to add"
            number = self.expressions.unit.text(found["at_least"])
            help_ = f"each(items, function, at_least={number})"
            raise refuse(self.expressions, node, "HF008", message, help_)
        value = require_count(self.expressions, found["at_least"], Count("at_least", 1))
        total = FunctionCall("count", (items.query,))
        needed = at_most(value, total, "ValueError: at_least is not 1 to the number of calls")
        return needed, _fewer(total, self.expressions.lower(found["at_least"]))

    def _count(self, found: dict[str, Any], count: Count) -> TypedQuery | None:
        node = found.get(count.name)
        return None if node is None else require_count(self.expressions, node, count)

    def _branches(self, node: ast.Call, name: str, found: dict[str, Any]) -> list[Branch]:
        nodes: tuple[ast.expr, ...] = found.get("branches", ())
        if not nodes:
            help_ = f"{name}(lambda: a(), lambda: b())"
            raise refuse(self.expressions, node, "HF008", f"{name}() needs branches", help_)
        functions = [self._function(branch, 0) for branch in nodes]
        returns_errors = self._returns_errors(node, found)
        return [
            self.lower_branch(self.expressions, function, (), returns_errors)
            for function in functions
        ]

    def _returns_errors(self, node: ast.Call, found: dict[str, Any]) -> bool:
        match found.get(RETURN_EXCEPTIONS):
            case None | ast.Constant(value=False):
                return False
            case ast.Constant(value=True):
                pass
            case value:
                message = f"{RETURN_EXCEPTIONS} decides the type of the result: it is no variable"
                raise refuse(self.expressions, value, "HF008", message, f"{RETURN_EXCEPTIONS}=True")
        for name in ("at_least", "tolerate"):
            if name in found:
                message = f"with {RETURN_EXCEPTIONS} no branch fails; {name} has nothing to count"
                help_ = f"{RETURN_EXCEPTIONS}=True, and count the errors in the result"
                raise refuse(self.expressions, node, "HF008", message, help_)
        return True

    def _function(self, node: ast.expr, parameters: int) -> ast.Lambda | LocalFunction:
        """Return the function of a branch. A task or workflow that is named without a call gets a
        lambda that calls it.
        """
        unit = self.expressions.unit
        found: ast.Lambda | LocalFunction | None = None
        match node:
            case ast.Lambda():
                found = node
            case ast.Name(id=name) if self.expressions.scope.is_local(name):
                entry = self.expressions.environment.entries.get(name)
                found = entry if isinstance(entry, LocalFunction) else None
            case _ if (declared := _declared(unit.outside(_without_options(node)))) is not None:
                _require_fit(self.expressions, node, declared, parameters)
                # Create the lambda for this node only once. The compiler identifies scopes by their
                # nodes, so a second lambda would get a scope of its own.
                found = unit.made.setdefault(node, _calling(node, parameters))
        if found is not None and _takes(found, parameters):
            return found
        raise refuse(
            self.expressions,
            node,
            "HF007",
            "a branch is a lambda, a local `def`, a task or a workflow "
            f"with {'one parameter' if parameters else 'no parameters'}",
            _as_branch(unit.text(node), found, parameters),
        )


def _declared(found: object) -> Callable[..., Any] | None:
    """Return the Python function of a task, a workflow or a helper; None for anything else."""
    if isinstance(found, Task | Workflow):
        declared: Callable[..., Any] = found.function
        return declared
    return found if isinstance(found, FunctionType) and is_helper(found) else None


def _as_branch(text: str, found: ast.Lambda | LocalFunction | None, parameters: int) -> str:
    """Return the code to write instead; an expression becomes the body of a lambda."""
    if parameters:
        return "lambda item: pack(item)"
    return f"lambda: {text}" if found is None else "lambda: charge(order.id)"


def _without_options(node: ast.expr) -> ast.expr:
    """Return the node `charge` for `charge.options(…)`."""
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


def _fewer(total: QueryTree, number: TypedQuery) -> TypedQuery:
    match total, number.query:
        case Constant(int(all_)), Constant(int(value)):
            return TypedQuery(Constant(all_ - value), INT, number.fails)
        case _:
            return TypedQuery(Binary("-", total, number.query), INT, number.fails)


def _takes(function: ast.Lambda | LocalFunction, parameters: int) -> bool:
    node = function.node if isinstance(function, LocalFunction) else function
    arguments = node.args
    others = (
        *arguments.kwonlyargs,
        *arguments.defaults,
        *(extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None),
    )
    return not others and len(arguments.posonlyargs) + len(arguments.args) == parameters


def _calling(task: ast.expr, parameters: int) -> ast.Lambda:
    """Return the node `lambda item: pack(item)` for `pack`, at the place of `pack`."""
    names = ["item"] * parameters
    values = [ast.copy_location(ast.Name(name, ast.Load()), task) for name in names]
    arguments: list[ast.expr] = [*values]
    call = ast.copy_location(ast.Call(task, arguments, []), task)
    taken = [ast.copy_location(ast.arg(name), task) for name in names]
    signature = ast.arguments([], taken, None, [], [], None, [])
    return ast.copy_location(ast.Lambda(signature, call), task)
