"""Statements: `ast` -> IR, in one walk along the flow that also finds out what cannot run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType, MappingProxyType
from typing import Any, Final

from holdfast.dsl.assignments import (
    lower_annotated_assignment,
    lower_append,
    lower_assignment,
    lower_augmented_assignment,
)
from holdfast.dsl.context import (
    REFUSED_EXPRESSION,
    Environment,
    Expression,
    Held,
    LocalFunction,
    UndoHandle,
    Unit,
    join_environments,
)
from holdfast.dsl.durable import find_durable
from holdfast.dsl.exceptions import lower_raise, lower_try, lower_undo, lower_with
from holdfast.dsl.expressions import Expressions
from holdfast.dsl.flow import Flow
from holdfast.dsl.hoisting import hoist_inside
from holdfast.dsl.ir import (
    Assign,
    Block,
    Break,
    Continue,
    If,
    Origin,
    Return,
    Sleep,
    Statement,
    Step,
    Target,
)
from holdfast.dsl.loops import lower_for, lower_while
from holdfast.dsl.query import NULL, Variable
from holdfast.dsl.scope import Scope
from holdfast.dsl.steps import Branch, Steps
from holdfast.dsl.types import NONE, REFUSED, Type, is_refused, join_all

_EMPTY: Final = Environment({})


class Statements:
    """Lowers the body of one function: the workflow or a branch."""

    def __init__(self, unit: Unit, scope: Scope, flow: Flow) -> None:
        self.unit = unit
        self.scope = scope
        self.flow = flow
        self.hoisted: dict[ast.AST, Expression] = {}
        self._pending: list[Statement] = []

    # Expressions of the statement that is being lowered.

    @property
    def expressions(self) -> Expressions:
        environment = self.flow.environment or _EMPTY
        return Expressions(self.unit, self.scope, environment, self.hoisted)

    @property
    def steps(self) -> Steps:
        return Steps(self.expressions, self._branch)

    def prepare(self, node: ast.expr) -> None:
        """Hoists the durable calls of an expression that is lowered next."""
        hoist_inside(self, _Whole(node))

    def value(self, node: ast.expr) -> Expression:
        self.prepare(node)
        return self.expressions.lower(node)

    def test(self, node: ast.expr) -> Expression:
        self.prepare(node)
        return self.expressions.truth(node)

    def protected(self, value: Expression, node: ast.AST, what: str) -> Expression:
        """`value`, computed before in a state that can catch, where somebody catches.

        Choice, Succeed, Fail and Wait cannot catch: without this a division by zero would skip the
        handlers and the undo steps.
        """
        if not (value.fails and self.flow.protections):
            return value
        variable = self.scope.name(what, (node, what))
        self.emit(Assign(self.origin(node), ((variable, value),)))
        return Expression(Variable(variable), value.type)

    def hoist(self, node: ast.Call, function: object, /) -> Expression:
        """A durable call inside an expression becomes a step with a variable of its own."""
        name = getattr(function, "name", None) or getattr(function, "__name__", "step")
        variable = self.scope.name(f"{name}_result", (node, "result"))
        type_ = self._step(node, function, (Target(variable),), node)
        result = REFUSED_EXPRESSION
        if type_ is not None:
            result = Expression(Variable(variable), type_)
        self.hoisted[node] = result
        return result

    def may_fail(self, node: ast.expr, /) -> bool:
        with self.unit.trial():
            return bool(self.expressions.lower(node).fails)

    def durable(self, node: ast.expr) -> Any:
        return find_durable(self.unit, self.scope, node)

    def step(
        self, node: ast.Call, targets: tuple[Target, ...] | None, whole: ast.AST
    ) -> Type | None:
        """A durable call that is a statement or the whole right side of one."""
        hoist_inside(self, node)
        return self._step(node, self.durable(node), targets, whole)

    def _step(
        self, node: ast.Call, function: Any, targets: tuple[Target, ...] | None, whole: ast.AST
    ) -> Type | None:
        found = self.steps.lower(node, function)
        if found is None:
            return None
        action, type_ = found
        if isinstance(action, Sleep):
            action = Sleep(self.protected(action.seconds, node, "seconds"))
        self._pending.append(Step(self.origin(whole), action, targets))
        return type_

    # Names.

    def origin(self, node: ast.AST, text: str = "") -> Origin:
        return Origin(self.unit.source.span(node), text or self.unit.text(node))

    def hold(self, name: str, type_: Type) -> str:
        """Gives `name` a value of this type from here on; answers with its ASL variable."""
        variable = self.scope.name(name)
        if self.flow.environment is not None:
            held = Held(Variable(variable), type_)
            self.flow.environment = self.flow.environment.with_entry(name, held)
        return variable

    def emit(self, statement: Statement) -> None:
        self._pending.append(statement)

    # Blocks.

    def block(self, nodes: Sequence[ast.stmt]) -> Block:
        outer, self._pending = self._pending, []
        for node in nodes:
            if self.flow.environment is None:
                self.unit.refuse(
                    node,
                    "HF010",
                    "this code can never run",
                    "remove it, or check the return/raise/break above",
                )
                break
            self.flow.note()
            self.hoisted = {}
            self._statement(node)
        block, self._pending = tuple(self._pending), outer
        return block

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                lower_assignment(self, node)
            case ast.AnnAssign():
                lower_annotated_assignment(self, node)
            case ast.AugAssign():
                lower_augmented_assignment(self, node)
            case ast.If():
                self._if(node)
            case ast.For():
                lower_for(self, node)
            case ast.While():
                lower_while(self, node)
            case ast.Break() | ast.Continue():
                self._jump(node)
            case ast.Return(value=value):
                self.lower_return(node, value)
            case ast.Raise():
                lower_raise(self, node)
            case ast.Try():
                lower_try(self, node)
            case ast.With():
                lower_with(self, node)
            case ast.FunctionDef():
                self._local_function(node)
            case ast.Expr(value=value):
                self._expression_statement(node, value)
            case ast.Pass():
                pass
            case _:
                self._unsupported(node)

    def _if(self, node: ast.If) -> None:
        test = self.protected(self.test(node.test), node.test, "test")
        expressions = self.expressions
        self.flow.environment = expressions.narrowed(node.test, is_true=True).environment
        body = self.block(node.body)
        after_body = self.flow.environment
        self.flow.environment = expressions.narrowed(node.test, is_true=False).environment
        orelse = self.block(node.orelse)
        self.flow.environment = join_environments(after_body, self.flow.environment)
        origin = self.origin(node, f"if {self.unit.text(node.test)}")
        self.emit(If(origin, test, body, orelse))

    def _jump(self, node: ast.Break | ast.Continue) -> None:
        # Python itself refuses a jump outside a loop.
        loop = self.flow.loops[-1]
        if isinstance(node, ast.Break):
            loop.end.reach(self.flow.environment)
            self.emit(Break(self.origin(node)))
        else:
            loop.head.reach(self.flow.environment)
            self.emit(Continue(self.origin(node)))
        self.flow.environment = None

    def lower_return(self, node: ast.AST, value: ast.expr | None) -> None:
        if isinstance(value, ast.Call) and self.durable(value) is not None:
            type_ = self.step(value, None, node)
        else:
            returned = Expression(NULL, NONE) if value is None else self.value(value)
            type_ = returned.type
            returned = self.protected(returned, node, "returned")
            self.emit(Return(self.origin(node), returned))
        self.flow.returned.append(REFUSED if type_ is None else type_)
        self.flow.environment = None

    def _local_function(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            self.unit.refuse(
                node.decorator_list[0],
                "HF007",
                "a branch has no decorators",
                f"def {node.name}(): … without a decorator",
            )
        if self.flow.environment is not None:
            entry = LocalFunction(node)
            self.flow.environment = self.flow.environment.with_entry(node.name, entry)

    def _expression_statement(self, node: ast.Expr, value: ast.expr) -> None:
        match value:
            case ast.Constant(value=constant) if isinstance(constant, str | EllipsisType):
                return  # a docstring, or an empty body
            case ast.Call() if self.durable(value) is not None:
                self.step(value, (), node)
            case ast.Call(func=ast.Name(id=name)) if isinstance(self._entry(name), UndoHandle):
                lower_undo(self, node, value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")) if (
                self.scope.is_local(name)
            ):
                lower_append(self, node, value, name)
            case _:
                self._without_effect(node, value)

    def _entry(self, name: str) -> object:
        environment = self.flow.environment
        return None if environment is None else environment.entries.get(name)

    def _without_effect(self, node: ast.Expr, value: ast.expr) -> None:
        if isinstance(value, ast.Call | ast.Await):
            # What is wrong with the call says more than that its result is not used.
            before = len(self.unit.diagnostics)
            found = self.value(value)
            if is_refused(found.type) and len(self.unit.diagnostics) > before:
                return
        message = "this expression has no effect in a workflow"
        self.unit.refuse(
            node, "HF011", message, f"remove it, or use it: `x = {self.unit.text(value)}`"
        )

    def _unsupported(self, node: ast.stmt) -> None:
        kind, help_ = _NO_STATEMENTS.get(
            type(node), (type(node).__name__, "do it inside a @pure function or a @task")
        )
        code = "HF021" if isinstance(node, ast.Nonlocal) else "HF001"
        self.unit.refuse(node, code, f"{kind} is not part of the workflow language", help_)
        for name in _bound_names(node):
            self.hold(name, REFUSED)

    # Branches.

    def _branch(
        self,
        expressions: Expressions,
        function: ast.Lambda | ast.FunctionDef,
        types: tuple[Type, ...],
    ) -> Branch:
        names = local_names(function)
        scope = self.unit.scope(self.scope, function, names)
        environment = expressions.environment
        for name in names:
            environment = environment.without(name)
        inner = Statements(self.unit, scope, Flow(environment))
        arguments = (*function.args.posonlyargs, *function.args.args)
        parameters = tuple(
            inner.hold(argument.arg, type_)
            for argument, type_ in zip(arguments, types, strict=True)
        )
        for name in names:
            scope.name(name)
        return Branch(inner.function_body(function), parameters, join_all(inner.flow.returned))

    def function_body(self, function: ast.Lambda | ast.FunctionDef) -> Block:
        """The statements of a function; where Python falls off its end, it returns None."""
        if isinstance(function, ast.Lambda):
            outer, self._pending = self._pending, []
            self.lower_return(function.body, function.body)
            block, self._pending = tuple(self._pending), outer
            return block
        body = self.block(function.body)
        if self.flow.environment is None:
            return body
        self.flow.returned.append(NONE)
        end = Return(self.origin(function.body[-1], "end"), Expression(NULL, NONE))
        return (*body, end)


class _Whole(ast.Expr):
    """Makes `hoist_inside` look at the node itself too."""

    def __init__(self, value: ast.expr) -> None:
        super().__init__(value=value)


def local_names(function: ast.Lambda | ast.FunctionDef) -> tuple[str, ...]:
    """What Python holds to be local to a function, in the order of the source."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    names = {argument.arg: None for argument in arguments}
    body: Iterable[ast.AST] = (
        function.body if isinstance(function, ast.FunctionDef) else [function.body]
    )
    for node in body:
        names.update(dict.fromkeys(_bound_names(node)))
    return tuple(names)


_OTHER_SCOPES: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _bound_names(node: ast.AST) -> list[str]:
    """The names that a statement gives a value, not looking into other scopes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.ClassDef(name=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.alias(name=name, asname=other):
            return [other or name.split(".", 1)[0]]
        case _ if isinstance(node, _OTHER_SCOPES):
            return []
    named = [node.name] if isinstance(node, ast.ExceptHandler) and node.name else []
    return named + [name for child in ast.iter_child_nodes(node) for name in _bound_names(child)]


_NO_STATEMENTS: Final[Mapping[type[ast.stmt], tuple[str, str]]] = MappingProxyType(
    {
        ast.Assert: ("assert", "if not ok: raise Unacceptable(…)"),
        ast.AsyncFor: ("async for", "for line in lines: …"),
        ast.AsyncFunctionDef: ("async def", "def branch(): …"),
        ast.AsyncWith: ("async with", "with compensating() as undo: …"),
        ast.ClassDef: ("class", "move the class to the top of the module"),
        ast.Delete: ("del", "give the variable another value"),
        ast.Global: ("global", "pass the value as an argument"),
        ast.Import: ("import", "move the import to the top of the module"),
        ast.ImportFrom: ("import", "move the import to the top of the module"),
        ast.Match: ("match", "if …: … elif …: …"),
        ast.Nonlocal: (
            "nonlocal",
            "return the value from the branch and combine the results afterwards",
        ),
        ast.TryStar: ("except*", "try: … except OutOfStock: …"),
    }
)
