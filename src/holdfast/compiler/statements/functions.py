"""The functions of branches: a `lambda`, or a local `def` that is named or that a `lambda` calls.

    parallel(lambda: ask_officer("risk"), withdrawn)

The body of `ask_officer` becomes part of the branch; its parameters are names for the arguments.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from holdfast.asl import error_names
from holdfast.compiler.checks import NO_FAILURES, failures_of, nameless_in
from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.environment import Environment, Held, LocalFunction
from holdfast.compiler.expressions.arguments import Given, given_arguments, is_name
from holdfast.compiler.expressions.declared import as_parameter
from holdfast.compiler.expressions.error_values import MARK, RAISED, with_mark
from holdfast.compiler.expressions.query import NULL, Variable
from holdfast.compiler.ir import (
    BranchErrors,
    ErrorHandler,
    Return,
    StatementBlock,
    Try,
)
from holdfast.compiler.statements.conditionals import as_if
from holdfast.compiler.statements.levels import distinct_levels
from holdfast.compiler.statements.local_names import local_names
from holdfast.compiler.statements.methods import find_methods
from holdfast.compiler.statements.returns import lower_return
from holdfast.compiler.steps.branching import Branch
from holdfast.compiler.steps.helpers import is_bound_in_body
from holdfast.compiler.steps.hoisting import hoist_inside
from holdfast.compiler.steps.step_arguments import StepRefused, refuse
from holdfast.compiler.types.error_fields import coded_names
from holdfast.compiler.types.types import NONE, UNKNOWN, ErrorOf, Type, is_refused, join_all
from holdfast.compiler.variable_names import VariableScopeNames

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions
    from holdfast.compiler.statements.statements import Statements


@dataclass(frozen=True, slots=True)
class Outer:
    """The place at which the branch of a function begins: the statements around it, and what is
    known there.
    """

    statements: Statements
    environment: Environment
    function: ast.Lambda | ast.FunctionDef


def lower_branch(
    statements: Statements,
    expressions: Expressions,
    function: ast.Lambda | LocalFunction,
    types: tuple[Type, ...],
    *,
    errors: BranchErrors,
    items: ast.expr | None,
) -> Branch:
    node = function.node if isinstance(function, LocalFunction) else function
    if isinstance(function, LocalFunction):
        refuse_recursion(statements, function.node, node)
    inner = _inside(statements, expressions.environment, function, node)
    levels = 1
    if items is not None and len(types) == 1:
        levels = distinct_levels(statements, items, UNKNOWN) - 1
    parameters = tuple(
        inner.hold(argument.arg, type_, distinct=max(1, levels))
        for argument, type_ in zip(_positional(node), types, strict=True)
    )
    name_all(inner)
    body = _lower_body(inner, node, errors)
    return Branch(body, parameters, join_all(inner.flow.returned))


def _lower_body(
    statements: Statements, function: ast.Lambda | ast.FunctionDef, errors: BranchErrors
) -> StatementBlock:
    match errors:
        case BranchErrors.RAISED:
            return function_body(statements, function)
        case BranchErrors.COUNTED:
            with statements.unit.library.catching([Exception]):
                body = function_body(statements, function)
            _returns_error(statements, body)
            return body
        case BranchErrors.RETURNED | BranchErrors.LATE:
            return _body_or_error(statements, function, is_late=errors is BranchErrors.LATE)
        case _:
            assert_never(errors)


def _returns_error(statements: Statements, body: StatementBlock) -> None:
    """Record that the function may also return the error of its body."""
    coded = coded_names([Exception], statements.unit.world)
    has_text = not failures_of(body).expressions
    nameless = "" if has_text else nameless_in(body)
    error = ErrorOf(has_text, coded=coded, is_marked=True, nameless=nameless)
    statements.flow.returned.append(error)


def _body_or_error(
    statements: Statements, function: ast.Lambda | ast.FunctionDef, *, is_late: bool
) -> StatementBlock:
    """Return the statements of the function inside of `try: …`, `except Exception as error: return
    error`. With `is_late` the call raises that error, so it is not a result for the author.
    """
    statements.flow.protections += 1
    with statements.unit.library.catching(() if is_late else [Exception]):
        body = function_body(statements, function)
    statements.flow.protections -= 1
    failures = failures_of(body)
    if not is_late:
        _returns_error(statements, body)
    if failures == NO_FAILURES:
        return body
    variable = statements.scope.name("error", (function, "error"))
    mark = RAISED if is_late else MARK
    returned = TypedQuery(with_mark(Variable(variable), mark), UNKNOWN)
    origin = statements.origin(function, "return the error")
    handler = ErrorHandler(
        origin, (Exception,), (error_names.ALL,), variable, (Return(origin, returned),)
    )
    return (Try(origin, body, (handler,), (), failures),)


def function_body(statements: Statements, function: ast.Lambda | ast.FunctionDef) -> StatementBlock:
    """Return the statements of the function. If it ends without a `return`, it returns None."""
    if isinstance(function, ast.Lambda):
        return statements.collected(lambda: _lower_lambda(statements, function))
    body = statements.block(function.body)
    if statements.flow.environment is None:
        return body
    statements.flow.returned.append(NONE)
    end = Return(statements.origin(function.body[-1], "end"), TypedQuery(NULL, NONE))
    return (*body, end)


def _inside(
    statements: Statements,
    here: Environment,
    function: ast.Lambda | LocalFunction,
    node: ast.Lambda | ast.FunctionDef,
) -> Statements:
    """Return the statements of the function, with the names that it can read."""
    environment, sees, original = here, statements.scope, node
    if isinstance(function, LocalFunction):
        environment, sees = environment_of(statements, function, here), function.scope
        original = function.node
    names = local_names(node)
    scope = statements.unit.scope(statements.scope, node, names, sees=sees)
    for name in names:
        environment = environment.without(name)
    return statements.inner(scope, environment, Outer(statements, here, original))


def environment_of(
    statements: Statements, function: LocalFunction, here: Environment
) -> Environment:
    """Return the present point of the function in which `function` is defined, whose names it can
    read.

    A branch between the two functions may have local names with the same spelling, which it must
    not read.
    """
    environment = here
    while statements.scope is not function.scope and statements.outer is not None:
        environment, statements = statements.outer.environment, statements.outer.statements
    return environment


def refuse_recursion(statements: Statements, function: ast.FunctionDef, node: ast.AST) -> None:
    outer = statements.outer
    while outer is not None:
        if outer.function is function:
            message = f"`{function.name}` calls itself: its body would have no end"
            help_ = "use a loop, or make it a @workflow of its own, which may call itself"
            raise refuse(statements.expressions, node, "HF007", message, help_)
        outer = outer.statements.outer


def name_all(inner: Statements) -> None:
    for name in inner.scope.local_names:
        inner.scope.name(name)


def _positional(node: ast.Lambda | ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args]


# Calls.


def _lower_lambda(statements: Statements, function: ast.Lambda) -> None:
    find_methods(statements, ast.Expr(function.body))
    match function.body:
        case ast.Call(func=ast.Name(id=name)) as call if isinstance(
            called := statements.entry(name), LocalFunction
        ):
            _lower_call(statements, call, called)
        case ast.IfExp() as body if choice := as_if(
            statements, ast.copy_location(ast.Return(body), body)
        ):
            statements.lower_if(choice)
        case body:
            lower_return(statements, body, body)


def _lower_call(statements: Statements, call: ast.Call, function: LocalFunction) -> None:
    """Emit the body in place of the call. Each call has its own copy, because scopes belong to
    nodes.
    """
    called = _Called(function.node, statements.unit, function.scope)
    refuse_recursion(statements, function.node, call)
    hoist_inside(statements, call)
    given = given_arguments(statements.expressions, call, called)
    if given is None:
        raise StepRefused
    here = statements.flow.environment
    assert here is not None
    node = copied(statements.unit, call, function.node)
    inner = _inside(statements, here, function, node)
    take(statements, inner, call, given)
    name_all(inner)
    statements.emit_all(function_body(inner, node))
    statements.flow.returned += inner.flow.returned
    statements.flow.environment = None


@dataclass(frozen=True, slots=True)
class _Called:
    """The local function that a lambda calls."""

    node: ast.FunctionDef
    unit: Unit
    sees: VariableScopeNames
    is_local: bool = True
    bound: ast.expr | None = None


def copied(unit: Unit, call: ast.Call, node: ast.FunctionDef) -> ast.FunctionDef:
    """Return the copy of a function for this call, the same one each time the call is lowered."""
    if call not in unit.copies:
        unit.copies[call] = copy.deepcopy(node)
    return unit.copies[call]


def take(statements: Statements, inner: Statements, call: ast.Call, given: list[Given]) -> None:
    """Make the parameters of `inner` names for the arguments, with assignments where these are
    needed.
    """
    function = inner.unit.functions[inner.scope]
    values: list[tuple[str, TypedQuery]] = []
    for parameter, node, argument in given:
        value = as_parameter(inner.unit, statements.unit, parameter, node or call, argument)
        name = parameter.arg
        distinct = 1 if node is None else distinct_levels(statements, node, value.type)
        variable = inner.hold(name, value.type, distinct=distinct)
        # Use the argument directly unless the body assigns to the parameter. Then the parameter
        # needs a variable.
        if is_name(value.query) and not is_bound_in_body(function, name):
            inner.give(name, Held(value.query, value.type, distinct=distinct))
        elif not is_refused(value.type):
            values.append((variable, value))
    if values:
        statements.assign(call, *values)
