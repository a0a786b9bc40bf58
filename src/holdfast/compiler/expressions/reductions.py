"""`functools.reduce(function, items, start)` with a function that is an expression."""

from __future__ import annotations

import ast
import operator
from collections.abc import Hashable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, fails_of
from holdfast.compiler.environment import Held
from holdfast.compiler.expressions.query import (
    FunctionLiteral,
    Variable,
    guard,
    invoke,
)
from holdfast.compiler.rewriting import load, located, parameters_named
from holdfast.compiler.types.types import Type, bounded, element_of, is_refused, join

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

_PLACE: Final = "the function of `reduce()`, which may run many times"
_HELP: Final = "reduce(lambda total, one: total + one, values, 0)"
_OPERATORS: Final[Mapping[object, type[ast.operator]]] = MappingProxyType(
    {operator.add: ast.Add, operator.mul: ast.Mult, operator.or_: ast.BitOr}
)
#: The type of the value so far grows with each round of lowering: `int`, then `int | float`.
_ROUNDS_MAX: Final = 6


def lower_reduce(expressions: Expressions, node: ast.Call) -> TypedQuery:
    match node:
        case ast.Call(args=[given, values, *first], keywords=[]) if len(first) < 2:
            function = _spelled_out(expressions, given)
        case _:
            function = None
    if function is None:
        message = "`reduce()` takes a lambda with two parameters, or a function by its name"
        return expressions.unit.refused(node, "HF002", message, _HELP)
    items = expressions.iterable(values)
    element = element_of(items.type)
    start = expressions.lower(first[0]) if first else None
    if element is None or is_refused(items.type) or (start and is_refused(start.type)):
        return REFUSED_EXPRESSION
    type_ = element if start is None else start.type
    for _ in range(_ROUNDS_MAX):
        with expressions.unit.trial():
            _, _, found = _body(expressions, function, type_, element)
        grown = bounded(join(type_, found.type))
        if grown == type_ or is_refused(grown):
            break
        type_ = grown
    so_far, item, body = _body(expressions, function, type_, element)
    if is_refused(body.type):
        return REFUSED_EXPRESSION
    step = FunctionLiteral((so_far.name, item.name), body.query)
    if start is not None:
        query = invoke("reduce", items.query, step, start.query)
        return TypedQuery(query, type_, fails_of(items, body, start))
    reduced = invoke("reduce", items.query, step)
    message = "TypeError: reduce() of empty iterable with no initial value"
    return TypedQuery(guard(reduced, message), type_, fails_of(items, body) | {"TypeError"})


def _body(
    expressions: Expressions, function: ast.Lambda, type_: Type, element: Type
) -> tuple[Variable, Variable, TypedQuery]:
    """Lower the function for a value so far of the type `type_`."""
    names = [one.arg for one in function.args.args]
    scope = expressions.unit.scope(expressions.scope, function, names)
    so_far, item = (Variable(scope.name(name, f"{name} of reduce")) for name in names)
    environment = expressions.environment.with_entry(names[0], Held(so_far, type_))
    environment = environment.with_entry(names[1], Held(item, element))
    inside = replace(expressions, scope=scope, environment=environment, place=_PLACE)
    return so_far, item, inside.lower(function.body)


def _spelled_out(expressions: Expressions, function: ast.expr) -> ast.Lambda | None:
    """Return the function as a lambda; None where it is not known."""
    if isinstance(function, ast.Lambda):
        arguments = function.args
        is_plain = not (arguments.defaults or arguments.vararg or arguments.kwonlyargs)
        names = {one.arg for one in arguments.args}
        return function if is_plain and len(arguments.args) == len(names) == 2 else None
    if not isinstance(function, ast.Name | ast.Attribute):
        return None
    left, right = (load(name) for name in ("so_far", "item"))
    body: ast.expr = ast.Call(function, [left, right], [])
    found = expressions.unit.outside(function) if expressions.is_outside(function) else None
    known = _OPERATORS.get(found) if isinstance(found, Hashable) else None
    if known is not None:
        body = ast.BinOp(left, known(), right)
    made = located(ast.Lambda(parameters_named("so_far", "item"), body), function)
    return expressions.unit.made.setdefault(function, made)
