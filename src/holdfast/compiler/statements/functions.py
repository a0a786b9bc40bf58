"""The functions of branches: a `lambda`, or a local `def` by its name or called by a `lambda`.

    parallel(lambda: ask_officer("risk"), withdrawn)

The body of `ask_officer` stands in the branch; its parameters are names for the arguments.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.compiler.context import Environment, Held, LocalFunction, TypedQuery
from holdfast.compiler.expressions.query import NULL, Constant, FieldOf, QueryTree, Variable
from holdfast.compiler.ir import Assign, Return, StatementBlock
from holdfast.compiler.statements.assignments import annotated_type, declared_type
from holdfast.compiler.statements.conditionals import as_if
from holdfast.compiler.statements.local_names import local_names
from holdfast.compiler.statements.returns import lower_return
from holdfast.compiler.steps.branching import Branch
from holdfast.compiler.steps.hoisting import hoist_inside
from holdfast.compiler.steps.step_arguments import refuse
from holdfast.compiler.types.types import NONE, Type, is_refused, join_all

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions
    from holdfast.compiler.statements.statements import Statements


@dataclass(frozen=True, slots=True)
class Outer:
    """The place at which the branch of a function begins: the enclosing statements and
    their facts.
    """

    statements: Statements
    environment: Environment
    function: ast.Lambda | ast.FunctionDef


def lower_branch(
    statements: Statements,
    expressions: Expressions,
    function: ast.Lambda | LocalFunction,
    types: tuple[Type, ...],
) -> Branch:
    node = function.node if isinstance(function, LocalFunction) else function
    if isinstance(function, LocalFunction):
        _refuse_recursion(statements, function, node)
    inner = _inside(statements, expressions.environment, function, node)
    parameters = tuple(
        inner.hold(argument.arg, type_)
        for argument, type_ in zip(_positional(node), types, strict=True)
    )
    _name_all(inner)
    return Branch(function_body(inner, node), parameters, join_all(inner.flow.returned))


def function_body(statements: Statements, function: ast.Lambda | ast.FunctionDef) -> StatementBlock:
    """The statements of a function; where Python falls off its end, it returns None."""
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
    """The statements of the function, with the names that it sees."""
    environment, sees, original = here, statements.scope, node
    if isinstance(function, LocalFunction):
        environment, sees = _environment_of(statements, function, here), function.scope
        original = function.node
    names = local_names(node)
    scope = statements.unit.scope(statements.scope, node, names, sees=sees)
    for name in names:
        environment = environment.without(name)
    return statements.inner(scope, environment, Outer(statements, here, original))


def _environment_of(
    statements: Statements, function: LocalFunction, here: Environment
) -> Environment:
    """The current point of the function that defines `function`, whose names `function` sees.

    A branch between the two may have names of its own that are spelled alike.
    """
    environment = here
    while statements.scope is not function.scope and statements.outer is not None:
        environment, statements = statements.outer.environment, statements.outer.statements
    return environment


def _refuse_recursion(statements: Statements, function: LocalFunction, node: ast.AST) -> None:
    outer = statements.outer
    while outer is not None:
        if outer.function is function.node:
            name = function.node.name
            message = f"`{name}` is a branch inside itself: its body would have no end"
            help_ = "use a loop, or make it a @workflow of its own, which may call itself"
            raise refuse(statements.expressions, node, "HF007", message, help_)
        outer = outer.statements.outer


def _name_all(inner: Statements) -> None:
    for name in inner.scope.local_names:
        inner.scope.name(name)


def _positional(node: ast.Lambda | ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args]


# Calls.


def _lower_lambda(statements: Statements, function: ast.Lambda) -> None:
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
    """The body in the place of the call. Each call has its own copy: scopes belong to nodes."""
    given = _arguments(statements, call, function.node)
    _refuse_recursion(statements, function, call)
    hoist_inside(statements, call)
    copies, here = statements.unit.copies, statements.flow.environment
    assert here is not None
    node = copies[call] = copies.get(call) or copy.deepcopy(function.node)
    inner = _inside(statements, here, function, node)
    values = tuple(
        (variable, value)
        for parameter in (*_positional(node), *node.args.kwonlyargs)
        for variable, value in _take(statements, inner, parameter, given[parameter.arg])
    )
    if values:
        statements.emit(Assign(statements.origin(call), values))
    _name_all(inner)
    statements.emit_all(function_body(inner, node))
    statements.flow.returned += inner.flow.returned
    statements.flow.environment = None


def _take(
    statements: Statements, inner: Statements, parameter: ast.arg, given: ast.expr
) -> Iterator[tuple[str, TypedQuery]]:
    """Make the parameter a name for its argument, and yield the assignments that this needs."""
    unit, value = statements.unit, statements.expressions.lower(given)
    note = parameter.annotation
    declared = None if note is None else annotated_type(unit, note)
    type_ = declared_type(unit, given, value.type, declared)
    variable = inner.hold(parameter.arg, type_)
    if _is_name(value.query):
        inner.give(parameter.arg, Held(value.query, type_))
    elif not is_refused(type_):
        yield variable, value


def _is_name(query: QueryTree) -> bool:
    """Return True when reading the query in many places costs nothing and cannot fail."""
    match query:
        case Variable() | Constant():
            return True
        case FieldOf(base, _):
            return _is_name(base)
        case _:
            return False


def _arguments(
    statements: Statements, call: ast.Call, function: ast.FunctionDef
) -> dict[str, ast.expr]:
    """Return the arguments by parameter."""
    expressions, taken = statements.expressions, function.args
    places = [argument.arg for argument in _positional(function)]
    names = [*places, *(argument.arg for argument in taken.kwonlyargs)]
    example = f"{function.name}({', '.join(names)})"
    if taken.defaults or any(taken.kw_defaults) or taken.vararg or taken.kwarg:
        message = f"`{function.name}` has defaults, `*` or `**`: a branch gives every argument"
        taking = ", ".join(map(ast.unparse, (*_positional(function), *taken.kwonlyargs)))
        help_ = f"def {function.name}({taking}): …"
        raise refuse(expressions, call, "HF007", message, help_)
    pairs = [*zip(places, call.args, strict=False)]
    pairs += [(word.arg or "**", word.value) for word in call.keywords]
    by_place_only = {argument.arg for argument in taken.posonlyargs}
    if (
        len(call.args) > len(places)
        or any(isinstance(argument, ast.Starred) for argument in call.args)
        or sorted(name for name, _ in pairs) != sorted(names)
        or any(word.arg in by_place_only for word in call.keywords)
    ):
        message = f"this call does not fit `def {example}`"
        raise refuse(expressions, call, "HF008", message, example)
    return dict(pairs)
