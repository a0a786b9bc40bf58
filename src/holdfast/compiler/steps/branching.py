"""`parallel`, `first` and `each`: from `ast` to the action and the type of its result."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, Protocol

from holdfast.api.surface import Task, Workflow
from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.environment import LocalFunction
from holdfast.compiler.expressions.arguments import is_name
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Constant,
    QueryTree,
    invoke,
)
from holdfast.compiler.ir import (
    Action,
    BranchErrors,
    RunEach,
    RunFirst,
    RunParallel,
    StatementBlock,
    Target,
)
from holdfast.compiler.rewriting import load, located, parameters_named
from holdfast.compiler.steps.batches import in_batches
from holdfast.compiler.steps.durable import chosen_pool
from holdfast.compiler.steps.helpers import is_helper
from holdfast.compiler.steps.step_arguments import (
    Checks,
    Count,
    StepRefused,
    refuse,
    require_count,
)
from holdfast.compiler.types.types import (
    BOOL,
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
CANCEL_OTHERS: Final = "cancel_others"
_NO_VARIABLE: Final = {
    RETURN_EXCEPTIONS: "{} decides the type of the result: it is no variable",
    CANCEL_OTHERS: "{} decides which states the workflow has: it is no variable",
}
_COUNTS: Final = frozenset({"at_least", "batch", "concurrency", "tolerate"})
#: The arguments with which a branch may fail, and then its result is None or its error.
_LIMITS: Final = frozenset({"at_least", "tolerate"})


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch: its body, the ASL variables of its parameters, and the type of its result."""

    body: StatementBlock
    parameters: tuple[str, ...]
    result: Type


class BranchingStatements(Checks, Protocol):
    """The statements around the call, in which its branches and its checks are lowered."""

    def lower_branch(
        self,
        expressions: Expressions,
        function: ast.Lambda | LocalFunction,
        types: tuple[Type, ...],
        errors: BranchErrors,
        items: ast.expr | None,
        /,
    ) -> Branch:
        """Lower the body of a branch: a `lambda` or a `def`, whose parameters have these types and
        are items of `items`. `errors` says what becomes of the error of the branch.
        """

    def kept(self, value: TypedQuery, node: ast.expr, what: str, /) -> TypedQuery:
        """Compute the value before the call, in a variable."""

    def require(self, test: TypedQuery, name: str, expected: str, node: ast.expr, /) -> None:
        """Raise a ValueError before the call when the test is false: `name` is not as expected."""


@dataclass(frozen=True, slots=True)
class Branching:
    expressions: Expressions
    statements: BranchingStatements

    def parallel(self, node: ast.Call, found: dict[str, Any]) -> tuple[Action, Type]:
        errors = self._errors(node, found)
        branches = self._branches(node, "parallel", found, errors)
        bodies = tuple(branch.body for branch in branches)
        concurrency = self._count(found, Count("concurrency", 0))
        needed, tolerated = self._quorum(found, Constant(len(branches)), len(branches))
        results = tuple(_result(one, found, errors) for one in branches)
        return RunParallel(bodies, concurrency, needed, tolerated, errors), TupleOf(results)

    def first(self, node: ast.Call, found: dict[str, Any]) -> tuple[Action, Type]:
        branches = self._branches(node, "first", found, BranchErrors.RAISED)
        action = RunFirst(tuple(branch.body for branch in branches))
        return action, join_all(branch.result for branch in branches)

    def each(self, node: ast.Call, found: dict[str, Any]) -> tuple[Action, Type]:
        items = self.expressions.iterable(found["items"])
        if is_refused(items.type):
            raise StepRefused
        parts = None if "batch" in found else _parts(element_of(items.type))
        function = self._function(found["function"], (1,) if parts is None else (1, len(parts)))
        if items.fails and not _COUNTS.isdisjoint(found):
            # Python evaluates the items before it checks the numbers.
            items = self.statements.kept(items, found["items"], "items")
        concurrency = self._count(found, Count("concurrency", 0))
        size = self._count(found, Count("batch", 1))
        if size is not None:
            items = in_batches(items, size)
        needed, tolerated = self._quorum(found, invoke("count", items.query))
        types: tuple[Type, ...] = (element_of(items.type) or REFUSED,)
        if parts is not None and not _takes(function, 1):
            types = parts
        errors = self._errors(node, found)
        branch = self.statements.lower_branch(
            self.expressions, function, types, errors, found["items"]
        )
        counts = (concurrency, needed, tolerated)
        targets = tuple(Target(name, n) for n, name in enumerate(branch.parameters))
        if len(targets) == 1:
            targets = (Target(branch.parameters[0]),)
        action = RunEach(items, targets, branch.body, *counts, errors)
        return action, ListOf(_result(branch, found, errors))

    def _quorum(
        self, found: dict[str, Any], total: QueryTree, most: int | None = None
    ) -> tuple[TypedQuery | None, TypedQuery | None]:
        """Return how many of the `total` branches must succeed, and how many may fail. `most` is
        their number if it is known.
        """
        tolerated = self._count(found, Count("tolerate", 0))
        if "at_least" not in found:
            return None, tolerated
        needed = self._checked(found["at_least"], Count("at_least", 1, most), total)
        if needed.query == total:
            return None, None
        # One failure more than `spare` leaves too few branches: its error is the one to raise.
        spare = _fewer(total, needed)
        return needed, spare if tolerated is None else _smaller(tolerated, spare)

    def _count(self, found: dict[str, Any], count: Count) -> TypedQuery | None:
        node = found.get(count.name)
        return None if node is None else self._checked(node, count, None)

    def _checked(self, node: ast.expr, count: Count, total: QueryTree | None) -> TypedQuery:
        """Return the number. A number or `total` that only the run knows is checked before the
        call.
        """
        value = require_count(self.expressions, node, count)
        if isinstance(value.query, Constant) and (total is None or isinstance(total, Constant)):
            return value
        if value.fails or not is_name(value.query):
            value = self.statements.kept(value, node, count.name)
        test: QueryTree = Binary(">=", value.query, Constant(count.least))
        if total is not None:
            is_reached = Binary("<=", value.query, total)
            is_known = isinstance(value.query, Constant)
            test = is_reached if is_known else Binary("and", test, is_reached)
        expected = count.expected
        if total is not None and count.most is None:
            expected = f"{count.least} to the number of calls"
        self.statements.require(TypedQuery(test, BOOL), count.name, expected, node)
        return value

    def _branches(
        self, node: ast.Call, name: str, found: dict[str, Any], errors: BranchErrors
    ) -> list[Branch]:
        nodes: tuple[ast.expr, ...] = found.get("branches", ())
        if not nodes:
            help_ = f"{name}(lambda: a(), lambda: b())"
            raise refuse(self.expressions, node, "HF008", f"{name}() needs branches", help_)
        functions = [self._function(branch, (0,)) for branch in nodes]
        return [
            self.statements.lower_branch(self.expressions, function, (), errors, None)
            for function in functions
        ]

    def _errors(self, node: ast.Call, found: dict[str, Any]) -> BranchErrors:
        returns = self._flag(found, RETURN_EXCEPTIONS, default=False)
        is_counted = not _LIMITS.isdisjoint(found)
        if self._flag(found, CANCEL_OTHERS, default=True):
            if not returns:
                return BranchErrors.RAISED
            return BranchErrors.COUNTED if is_counted else BranchErrors.RETURNED
        if returns or is_counted:
            others = f"{RETURN_EXCEPTIONS}, tolerate and at_least"
            message = f"{CANCEL_OTHERS}=False raises an error; {others} decide that themselves"
            help_ = f"{RETURN_EXCEPTIONS}=True  # without {CANCEL_OTHERS}: all branches end"
            raise refuse(self.expressions, node, "HF008", message, help_)
        return BranchErrors.LATE

    def _flag(self, found: dict[str, Any], name: str, *, default: bool) -> bool:
        match found.get(name):
            case None:
                return default
            case ast.Constant(value=bool() as value):
                return value
            case node:
                message = _NO_VARIABLE[name].format(name)
                raise refuse(self.expressions, node, "HF008", message, f"{name}={not default}")

    def _function(self, node: ast.expr, numbers: Sequence[int]) -> ast.Lambda | LocalFunction:
        """Return the function of a branch, which takes one of these `numbers` of arguments; the
        first that fits counts. A task or workflow that is named without a call gets a lambda that
        calls it.
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
                number = _require_fit(self.expressions, node, declared, numbers)
                self._require_no_chosen_pool(node, number)
                # Create the lambda for this node only once. The compiler identifies scopes by their
                # nodes, so a second lambda would get a scope of its own.
                found = unit.made.setdefault(node, _calling(node, number))
        if found is not None and any(_takes(found, number) for number in numbers):
            return found
        raise refuse(
            self.expressions,
            node,
            "HF007",
            f"a branch is a lambda, a local `def`, a task or a workflow with {_counted(numbers)}",
            _as_branch(self.expressions, node, found, numbers[-1]),
        )

    def _require_no_chosen_pool(self, node: ast.expr, number: int) -> None:
        """Refuse a task with a computed pool as a branch. Python computes the pool once, before the
        branches begin, and fails there.
        """
        if chosen_pool(self.expressions.unit, self.expressions.scope, node) is None:
            return
        message = "a branch computes its pool in a lambda"
        help_ = _as_branch(self.expressions, node, None, number)
        names = ", ".join(_names(number)) if number else ""
        raise refuse(self.expressions, node, "HF008", message, f"{help_}({names})")


def _result(branch: Branch, found: dict[str, Any], errors: BranchErrors) -> Type:
    """Return the type of the branch's place in the result."""
    is_partial = errors is BranchErrors.RAISED and not _LIMITS.isdisjoint(found)
    return join(branch.result, NONE) if is_partial else branch.result


def _declared(found: object) -> Callable[..., Any] | None:
    """Return the Python function of a task, a workflow or a helper; None for anything else."""
    if isinstance(found, Task | Workflow):
        declared: Callable[..., Any] = found.function
        return declared
    return found if isinstance(found, FunctionType) and is_helper(found) else None


def _parts(element: Type | None) -> tuple[Type, ...] | None:
    """Return the types of the parts of an item that several parameters can take."""
    match element:
        case TupleOf(elements) if len(elements) > 1:
            return elements
        case _:
            return None


def _counted(numbers: Sequence[int]) -> str:
    match numbers:
        case (0,):
            return "no parameters"
        case (1,):
            return "one parameter"
        case _:
            return f"one parameter, or {numbers[-1]} for the parts of the tuple"


def _as_branch(
    expressions: Expressions,
    node: ast.expr,
    found: ast.Lambda | LocalFunction | None,
    number: int,
) -> str:
    """Return the code to write instead. `number`: how many arguments the branch gets."""
    unit = expressions.unit
    text = unit.text(node)
    match found:
        case None if number and isinstance(node, ast.Name | ast.Attribute):
            return f"lambda item: {text}(item)"
        case None:
            return f"lambda item: {text}" if number else f"lambda: {text}"
        case LocalFunction():
            own = len(_parameters(found.node))
            given = [*_names(number)[:own], *["…"] * (own - number)]
            head = " ".join(["lambda", ", ".join(_names(number))]).rstrip()
            return f"{head}: {text}({', '.join(given)})"
        case ast.Lambda():
            names = [argument.arg for argument in _parameters(found)]
            kept = [*names, *_names(number)[len(names) :]][:number]
            head = " ".join(["lambda", ", ".join(kept)]).rstrip()
            read = {one.id for one in ast.walk(found.body) if isinstance(one, ast.Name)}
            is_whole = read.isdisjoint(set(names) - set(kept))
            return f"{head}: {unit.text(found.body) if is_whole else '…'}"


def _names(number: int) -> list[str]:
    """Return names for the arguments of a branch."""
    return ["item"] if number == 1 else [f"part{n + 1}" for n in range(number)]


def _parameters(function: ast.Lambda | ast.FunctionDef) -> list[ast.arg]:
    arguments = function.args
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _without_options(node: ast.expr) -> ast.expr:
    """Return the node `charge` for `charge.options(…)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=task, attr="options")):
            return task
        case _:
            return node


def _require_fit(
    expressions: Expressions, node: ast.expr, function: Callable[..., Any], numbers: Sequence[int]
) -> int:
    """Return with how many arguments the function is called: the first number that fits."""
    signature = inspect.signature(function)
    for number in numbers:
        try:
            signature.bind(*[None] * number)
        except TypeError as error:
            failure = error
        else:
            return number
    text = expressions.unit.text(node)
    others = ", ".join([*["item"] * min(1, numbers[0]), *["…"] * (len(signature.parameters) - 1)])
    help_ = f"lambda item: {text}({others})  # or each(zip(items, …), {text})"
    if numbers[0] == 0:
        help_ = f"lambda: {text}({', '.join(signature.parameters)})"
    message = f"`{text}` alone is no branch here: {failure}"
    raise refuse(expressions, node, "HF007", message, help_)


def _fewer(total: QueryTree, number: TypedQuery) -> TypedQuery:
    match total, number.query:
        case Constant(int(all_)), Constant(int(value)):
            return TypedQuery(Constant(all_ - value), INT, number.fails)
        case _:
            return TypedQuery(Binary("-", total, number.query), INT, number.fails)


def _smaller(left: TypedQuery, right: TypedQuery) -> TypedQuery:
    match left.query, right.query:
        case Constant(int(one)), Constant(int(other)):
            return TypedQuery(Constant(min(one, other)), INT)
        case one, other:
            smallest = invoke("min", ArrayOf((one, other)))
            return TypedQuery(smallest, INT, fails_of(left, right))


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
    names = _names(parameters) if parameters else []
    call = ast.Call(task, [load(name) for name in names], [])
    return located(ast.Lambda(parameters_named(*names), call), task)
