"""The arguments of a call of the author's own function, whose body replaces the call."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from holdfast.compiler.context import Environment, TypedQuery, Unit
from holdfast.compiler.expressions.outside import from_outside
from holdfast.compiler.expressions.query import Constant, FieldOf, QueryTree, Variable
from holdfast.compiler.types.types import is_refused
from holdfast.compiler.variable_names import VariableScopeNames

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


class Called(Protocol):
    """The function that is called. `sees` is the scope in which it is defined."""

    @property
    def node(self) -> ast.FunctionDef: ...
    @property
    def unit(self) -> Unit: ...
    @property
    def sees(self) -> VariableScopeNames: ...
    @property
    def is_local(self) -> bool: ...
    @property
    def bound(self) -> ast.expr | None: ...


class Given(NamedTuple):
    """The value of one parameter. `node` is None when the value is its default."""

    parameter: ast.arg
    node: ast.expr | None
    value: TypedQuery


def parameters_of(node: ast.Lambda | ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def given_arguments(expressions: Expressions, call: ast.Call, called: Called) -> list[Given] | None:
    """Return the arguments in the order of the call, then the defaults; None when refused."""
    unit, node = expressions.unit, called.node
    if node.args.vararg or node.args.kwarg:
        message = f"`{node.name}` takes `*` or `**`, and its body stands where it is called"
        taking = ", ".join(map(ast.unparse, parameters_of(node)))
        help_ = f"def {node.name}({taking or 'names: list[str]'}): …"
        unit.refuse(call, "HF007", message, help_)
        return None
    pairs = _pairs(_bound(call, called.bound), node)
    if pairs is None:
        names_of = [arg.arg for arg in parameters_of(node)]
        message = f"this call does not fit `def {node.name}({', '.join(names_of)})`"
        given_by = names_of if called.bound is None else names_of[1:]
        unit.refuse(call, "HF008", message, f"{unit.text(call.func)}({', '.join(given_by)})")
        return None
    given = [Given(arg, value, expressions.lower(value)) for arg, value in pairs]
    names = {arg.arg for arg, _ in pairs}
    for parameter in parameters_of(node):
        if parameter.arg not in names:
            value = _default(expressions, call, called, parameter.arg)
            given.append(Given(parameter, None, value))
    return None if any(is_refused(one.value.type) for one in given) else given


def _bound(call: ast.Call, receiver: ast.expr | None) -> ast.Call:
    """Return the call of a method with its object as the first argument."""
    return call if receiver is None else ast.Call(call.func, [receiver, *call.args], call.keywords)


def _pairs(call: ast.Call, node: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr]] | None:
    """Return each argument with its parameter; None when the call does not fit the function."""
    by_place = [*node.args.posonlyargs, *node.args.args]
    by_name = {arg.arg: arg for arg in (*node.args.args, *node.args.kwonlyargs)}
    if len(call.args) > len(by_place) or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    pairs = list(zip(by_place, call.args, strict=False))
    for word in call.keywords:
        if word.arg not in by_name:
            return None
        pairs.append((by_name[word.arg], word.value))
    names = [arg.arg for arg, _ in pairs]
    is_whole = set(names) | _defaults(node).keys() >= {arg.arg for arg in parameters_of(node)}
    return pairs if is_whole and len(set(names)) == len(names) else None


def _defaults(node: ast.FunctionDef) -> dict[str, ast.expr]:
    by_place = [*node.args.posonlyargs, *node.args.args]
    defaults = node.args.defaults
    found = dict(
        zip((arg.arg for arg in by_place[len(by_place) - len(defaults) :]), defaults, strict=True)
    )
    for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is not None:
            found[arg.arg] = default
    return found


def _default(expressions: Expressions, call: ast.Call, called: Called, name: str) -> TypedQuery:
    """Return the value of a default as a constant, because Python computes it once, at the
    `def`.
    """
    unit = called.unit
    if not called.is_local:
        default: Any = inspect.signature(unit.function).parameters[name].default
        return from_outside(expressions.unit, call, default)
    node = _defaults(called.node)[name]
    names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    if any(called.sees.is_local(part) for part in names):
        message = f"the default of `{name}` is computed at the `def`, not at the call"
        help_ = f"{called.node.name}({name}={unit.text(node)})"
        return expressions.unit.refused(call, "HF007", message, help_)
    return expressions.of_helper(unit, called.sees, Environment({})).lower(node)


def is_name(query: QueryTree) -> bool:
    """Return True for a query that may be repeated in many places: it costs nothing and cannot
    fail.
    """
    match query:
        case Variable() | Constant():
            return True
        case FieldOf(base, _):
            return is_name(base)
        case _:
            return False
