"""One workflow during its compilation: its source, its module's names, and the refusals so far.

A `Unit` is mutable and lives for one compilation. It also holds everything that belongs to a node
of the source and must be the same in each round of a loop: scopes, replacements of nodes, and the
nodes that contain durable calls.

`Unit.outside` reads the author's names, but only from modules and classes. Reading any other
attribute would run the author's code.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

from holdfast.api.services import AwsService
from holdfast.api.tasks import Task
from holdfast.api.workflows import Workflow
from holdfast.compiler.diagnostics import Diagnostic
from holdfast.compiler.expressions.pure_help import pure_function
from holdfast.compiler.expressions.query import QueryTree, RefusedQuery
from holdfast.compiler.source import Source, Span
from holdfast.compiler.types.failures import ErrorClasses
from holdfast.compiler.types.types import REFUSED, Type
from holdfast.compiler.variable_names import VariableScopeNames


class TypedQuery(NamedTuple):
    """A JSONata query, the type of its value, and the Python errors that it may raise."""

    query: QueryTree
    type: Type
    fails: frozenset[str] = frozenset()


class Chain(NamedTuple):
    """`order.lines[0]` in an expression: the name, and each access, with None for a subscript.

    `is_inner`: the expression keeps at most what is inside of this value, as `list(xs)` does.
    `method`: the method that is called on it; that of an author's model may return its object.
    """

    name: str
    accesses: tuple[str | None, ...] = ()
    is_inner: bool = False
    method: str = ""


class Captured(NamedTuple):
    """The values that branches and local functions may keep: those of `names` as a whole, and the
    parts that `chains` names.
    """

    names: frozenset[str]
    chains: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class Taking:
    """`xs.pop()` and the like: a change of `name` that gives a value; see `statements.mutators`."""

    name: str


@dataclass(frozen=True, slots=True)
class Dispatch:
    """`TOOLS[name](…)`: a call of one of these tasks or workflows."""

    tasks: Mapping[Any, Task[..., Any] | Workflow[..., Any]]


@dataclass(frozen=True, slots=True)
class NamedValue(Taking):
    """`(status := poll(job))`: an assignment inside an expression."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A comprehension with steps in it, which becomes a loop; see `statements.repeated`."""


@dataclass(frozen=True, slots=True)
class LibraryStep:
    """The call of a step of Python's library that replaces an expression; see `library_calls`."""

    call: ast.Call
    task: Task[..., Any]


@dataclass(frozen=True, slots=True)
class NamedFailure:
    """An expression whose error a handler names, so that a test of its operands stands before the
    statement; see `statements.named_failures`.
    """


@dataclass(frozen=True, slots=True)
class LibrarySteps:
    """The findings of one pass about steps of the library, for the next pass.

    `helpers`: the plain helpers whose bodies contain such steps, so that they are no expressions.
    `rewritten`: the expressions that replace others with the same meaning.
    `caught`: the classes that the handlers around the present statement name. Exception counts
    only where the handler reads the error: without that, no one sees the error's name.
    `is_called`: another workflow calls this one, and may read its errors; see `called`.
    """

    is_called: bool = False

    steps: dict[ast.expr, LibraryStep | NamedFailure] = field(default_factory=dict)
    helpers: set[ast.FunctionDef] = field(default_factory=set)
    rewritten: dict[ast.expr, ast.expr] = field(default_factory=dict)
    caught: list[type[BaseException]] = field(default_factory=list)

    @contextmanager
    def catching(self, classes: Iterable[type[BaseException]]) -> Iterator[None]:
        """Record the classes while the body of their handlers is lowered."""
        kept = len(self.caught)
        self.caught.extend(classes)
        try:
            yield
        finally:
            del self.caught[kept:]


#: The help for an undo step that a branch registers. The results of branches are lost when one of
#: them fails, so the help names the form that keeps them.
UNDO_AFTER_BRANCHES: Final = (
    "return what is needed from each branch, with return_exceptions=True, and register the undo "
    "steps afterwards: docs/how-to/cookbook-undo.md#undo-what-branches-have-done"
)


NOTHING: Final = object()


def _no_failures(_: Workflow[..., Any]) -> frozenset[str]:
    return frozenset()


class Unit:
    """One workflow during its compilation: its source, its module's names, and its refusals."""

    def __init__(self, source: Source, workflow: Workflow[..., Any]) -> None:
        self.source = source
        self.workflow = workflow
        self.function: Callable[..., Any] = workflow.function
        self.diagnostics: list[Diagnostic] = []
        #: The expressions over whose items the code iterates in any order. Only these may be sets,
        #: because the order of a set's items is not defined.
        self.unordered: set[ast.expr] = set()
        self.made: dict[ast.expr, ast.Lambda] = {}
        #: For each call of a local function, the copy of the function that was made for this call.
        self.copies: dict[ast.Call, ast.FunctionDef] = {}
        #: For each call of a helper that is pasted, the copy of its function, and its new names.
        self.pasted: dict[ast.Call, tuple[ast.FunctionDef, Mapping[str, str]]] = {}
        #: For each helper, the variables of its caller that it changes.
        self.changed: dict[ast.FunctionDef, frozenset[str]] = {}
        #: For each called function, the arguments of the call with those of `*names` gathered.
        self.rest_arguments: dict[ast.expr, Any] = {}
        #: For each call with `*pair` and the lengths of such tuples, the call without stars.
        self.spread_calls: dict[tuple[ast.Call, tuple[int, ...]], ast.Call] = {}
        self.spread_words: dict[tuple[ast.keyword, tuple[str, ...]], list[ast.keyword]] = {}
        #: For each conditional expression that contains steps, the `if` statement that replaces it.
        self.conditionals: dict[ast.IfExp, ast.If] = {}
        #: For each change of an inner list, the assignment that replaces the change. None when
        #: another name may refer to the list, because the change is then refused.
        self.inner_changes: dict[ast.Expr, ast.Assign | None] = {}
        #: For each `d.setdefault(key, []).append(v)`, the two statements that replace it.
        self.defaults: dict[ast.Expr, list[ast.stmt]] = {}
        #: For each comprehension with steps, the call and the function that replace it.
        self.loops: dict[ast.expr, ast.Call] = {}
        self.loop_functions: dict[ast.expr, ast.FunctionDef] = {}
        #: The generators whose items are all used at once, as by `sum(…)`.
        self.used_up: set[ast.expr] = set()
        #: For each `with suppress(…)`, the `try` that replaces it.
        self.suppressed: dict[ast.withitem, ast.Try] = {}
        #: For each examined expression, whether it contains a durable call.
        self.with_durable: dict[ast.expr, bool] = {}
        #: For each ASL variable, the type of every value that is assigned to it.
        self.assigned: dict[str, Type] = {}
        #: File and line of each step that is missing in the result, because the step or one of its
        #: arguments was refused.
        self.lost_lines: set[tuple[str, int]] = set()
        #: The expressions that steps of Python's library compute; see `library_calls`.
        self.library = LibrarySteps()
        #: Returns the errors without a name that the expressions of a called workflow raise.
        self.failures_of_child: Callable[[Workflow[..., Any]], frozenset[str]] = _no_failures
        self._scopes: dict[ast.AST, VariableScopeNames] = {}
        #: For each scope, the function whose body it belongs to.
        self.functions: dict[VariableScopeNames, ast.FunctionDef] = {}
        #: For each call, the helper that it calls, or None when it calls no helper.
        self.helpers: dict[ast.Call, Helper | None] = {}
        #: For each call of a method of a model in the statement that is lowered, its helper.
        self.methods: dict[ast.Call, Helper | None] = {}
        #: The methods and properties whose bodies are being lowered, to notice recursion.
        self.methods_open: list[ast.FunctionDef] = []
        #: For each property that is read, the call that stands for it.
        self.property_calls: dict[ast.Attribute, ast.Call] = {}
        #: For each variable, the expression that last gave a second name to its value or a part.
        self.holders: dict[str, ast.expr] = {}
        #: Calls of helpers that return a list or dict to which no other name refers.
        self.fresh_calls: set[ast.Call] = set()
        #: Those of them whose result has no part that an argument could share with it.
        self.new_calls: set[ast.Call] = set()
        #: For each lowered call of a helper, the levels of its result that hold no object twice.
        self.distinct_calls: dict[ast.Call, int] = {}
        #: For each lowered call of `pop`, how many levels of its result no name refers to.
        self.taken_levels: dict[ast.AST, int] = {}
        #: The values around them that branches and local functions may keep; None when the
        #: workflow changes no value in place. See `aliases`.
        self.captured: Captured | None = None

    def anew(self) -> Unit:
        """Return a unit for another pass over the workflow. Nodes that this pass has made are used
        again, because `library` names some of them.
        """
        other = Unit(self.source, self.workflow)
        other.library, other.copies, other.made = self.library, self.copies, self.made
        other.failures_of_child = self.failures_of_child
        other.defaults, other.property_calls = self.defaults, self.property_calls
        other.loops, other.loop_functions = self.loops, self.loop_functions
        other.pasted, other.inner_changes = self.pasted, self.inner_changes
        return other

    @cached_property
    def world(self) -> ErrorClasses:
        """Return the error classes that the workflow's handlers may name."""
        return ErrorClasses(self.function)

    def beside(self, source: Source, function: Callable[..., Any]) -> Unit:
        """Return a unit of the same compilation for a function in another file, with the names of
        its module.
        """
        other = copy.copy(self)
        other.source, other.function, other.captured = source, function, None
        other.world = self.world
        return other

    def scope(
        self,
        parent: VariableScopeNames | None,
        key: ast.AST,
        local_names: Iterable[str],
        *,
        sees: VariableScopeNames | None = None,
        is_inlined: bool = False,
    ) -> VariableScopeNames:
        """Return the scope of the function or comprehension `key`, the same one at each call.

        The compiler lowers the body of a loop repeatedly until its types remain the same. The
        variables of the body must have the same names each time.
        """
        if key not in self._scopes:
            scope = VariableScopeNames(parent, local_names, sees, is_inlined=is_inlined)
            self._scopes[key] = scope
            if isinstance(key, ast.FunctionDef):
                self.functions[scope] = key
        return self._scopes[key]

    def rewritten(self, node: ast.expr, other: ast.expr) -> ast.expr:
        """Return the expression that replaces `node`: `other`, or the one of an earlier pass."""
        return self.library.rewritten.setdefault(node, other)

    def refuse(self, node: ast.AST, code: str, message: str, help_: str = "") -> None:
        """Add a refusal. A help text that ends with "a @pure function" is extended with the code of
        that function.
        """
        if help_.endswith("@pure function"):
            code_ = pure_function(node, self.text, self._is_outside, self._is_step)
            help_ = f"{help_}: `{code_}`" if code_ else help_
        self.refuse_at(self.source.span(node), code, message, help_)

    def _is_outside(self, node: ast.expr) -> bool:
        return self.outside(node) is not NOTHING

    def _is_step(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and isinstance(self.outside(node.func), Task | Workflow)

    def refuse_at(self, span: Span, code: str, message: str, help_: str = "") -> None:
        line = self.source.lines[span.line - 1]
        self.diagnostics.append(
            Diagnostic(
                self.source.file, span.line, span.column, code, message, help_, line, span.width
            )
        )

    def refused(self, node: ast.AST, code: str, message: str, help_: str = "") -> TypedQuery:
        """Add a refusal, and return a placeholder that causes no further refusals."""
        self.refuse(node, code, message, help_)
        return REFUSED_EXPRESSION

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Lower code only to see the result. Its refusals are dropped, because the caller lowers
        the same code again.
        """
        kept = len(self.diagnostics)
        try:
            yield
        finally:
            del self.diagnostics[kept:]

    def text(self, node: ast.AST) -> str:
        return self.source.text(node)

    def outside(self, node: ast.expr) -> Any:
        """Return the object that a global name, or an attribute of a module or class, refers to.

        Return NOTHING when the name is unknown. Only modules and classes are read: reading any
        other attribute would run the author's code.
        """
        if isinstance(node, ast.Name):
            found = self.function.__globals__.get(node.id, NOTHING)
            return getattr(builtins, node.id, NOTHING) if found is NOTHING else found
        if isinstance(node, ast.Attribute):
            owner = self.outside(node.value)
            if isinstance(owner, ModuleType | type | AwsService):
                return getattr(owner, node.attr, NOTHING)
        return NOTHING


@dataclass(frozen=True, slots=True)
class Helper:
    """A plain function whose body replaces its call; see `steps.helpers`.

    `unit` reads the names of its module; `sees` is the scope whose local names it can read.

    A local helper is found only by its name. The call finds out which function the name has at that
    point.
    """

    node: ast.FunctionDef
    unit: Unit
    sees: VariableScopeNames
    is_local: bool
    is_expression: bool
    #: True when the body only computes and always ends, because it has no durable call, no `raise`
    #: and no `while`.
    is_quiet: bool
    #: The object whose method this is; None for a function.
    bound: ast.expr | None = None

    @property
    def name(self) -> str:
        return self.node.name


REFUSED_EXPRESSION: Final = TypedQuery(RefusedQuery(), REFUSED)


#: The place of an operand that Python evaluates sometimes. A step in it makes the whole expression
#: an `if` before the statement (`steps/hoisting.py`).
CONDITION: Final = "a condition"
#: The `place` of the parts of a comprehension, which become a loop where they need a step.
COMPREHENSION: Final = "a comprehension"


class Lowering(Protocol):
    """The methods of `expressions.Expressions` that the rules for calls and operators use."""

    @property
    def unit(self) -> Unit: ...
    @property
    def place(self) -> str: ...
    @property
    def hoisted(self) -> Mapping[ast.AST, TypedQuery]: ...
    def lower(self, node: ast.expr, /) -> TypedQuery: ...
    def gone_through(self, node: ast.expr, /) -> TypedQuery: ...
    def truth(self, node: ast.expr, /) -> TypedQuery: ...
    def iterable(self, node: ast.expr, /) -> TypedQuery: ...
    def is_builtin(self, name: str, /) -> bool: ...
    def is_outside(self, node: ast.expr, /) -> bool: ...


def fails_of(*expressions: TypedQuery) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for expression in expressions:
        if expression.fails:
            found |= expression.fails
    return found
