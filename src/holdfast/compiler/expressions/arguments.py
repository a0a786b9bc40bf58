"""The arguments of a call of the author's own function, whose body replaces the call."""

from __future__ import annotations

import ast
import copy
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from holdfast.api.tasks import Task
from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.environment import Environment
from holdfast.compiler.expressions.outside import from_outside
from holdfast.compiler.expressions.query import Constant, FieldOf, QueryTree, Variable
from holdfast.compiler.rewriting import load
from holdfast.compiler.types.types import ListOf, TupleOf, is_refused
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
    """Return the parameters that take one argument each."""
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def given_arguments(expressions: Expressions, call: ast.Call, called: Called) -> list[Given] | None:
    """Return the arguments in the order of the call, then the defaults; None when refused."""
    call = spread_tuples(expressions, call)
    unit, node = expressions.unit, called.node
    pairs = _pairs(_with_rest(unit, _bound(call, called.bound), node), node)
    if pairs is None:
        names_of = [arg.arg for arg in parameters_of(node)]
        names_of += [f"*{node.args.vararg.arg}"] if node.args.vararg else []
        names_of += [f"**{node.args.kwarg.arg}"] if node.args.kwarg else []
        message = f"this call does not fit `def {node.name}({', '.join(names_of)})`"
        given_by = names_of if called.bound is None else names_of[1:]
        unit.refuse(call, "HF008", message, f"{unit.text(call.func)}({', '.join(given_by)})")
        return None
    functions = [(arg, value) for arg, value in pairs if _is_function(expressions, value)]
    for arg, function in functions:
        _refuse_function(unit, node, arg, function)
    if functions:
        return None
    whole = unit.rest_arguments[call.func].rest
    given = [
        Given(
            arg,
            value,
            _as_tuple(expressions.lower(value)) if value is whole else expressions.lower(value),
        )
        for arg, value in pairs
    ]
    names = {arg.arg for arg, _ in pairs}
    for parameter in parameters_of(node):
        if parameter.arg not in names:
            value = _default(expressions, call, called, parameter.arg)
            given.append(Given(parameter, None, value))
    return None if any(is_refused(one.value.type) for one in given) else given


def spread_tuples(expressions: Expressions, call: ast.Call) -> ast.Call:
    """Return the call with `pair[0], pair[1]` in place of `*pair`, where `pair` is a name or a
    field with a tuple of a known length.

    It is the same node each time the call is lowered with tuples of these lengths: a loop is
    lowered again when the type of a name has changed.
    """
    lengths = tuple(_length(expressions, argument) for argument in call.args)
    if not any(lengths):
        return call
    known = expressions.unit.spread_calls
    if (call, lengths) not in known:
        spread: list[ast.expr] = []
        for argument, length in zip(call.args, lengths, strict=True):
            if isinstance(argument, ast.Starred) and length:
                spread += [_part(argument.value, number) for number in range(length)]
            else:
                spread.append(argument)
        made = ast.Call(copy.copy(call.func), spread, call.keywords)
        known[call, lengths] = ast.copy_location(made, call)
    return known[call, lengths]


def _is_path(node: ast.expr) -> bool:
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant()):
            return _is_path(value)
        case _:
            return False


def _length(expressions: Expressions, node: ast.expr) -> int:
    """Return the length of the tuple in `*pair`; 0 for other arguments and other values."""
    if not isinstance(node, ast.Starred) or not _is_path(node.value):
        return 0
    with expressions.unit.trial():
        type_ = expressions.lower(node.value).type
    return len(type_.elements) if isinstance(type_, TupleOf) else 0


def _part(value: ast.expr, number: int) -> ast.expr:
    part = ast.copy_location(ast.Constant(number), value)
    return ast.copy_location(ast.Subscript(value, part, ast.Load()), value)


def _is_function(expressions: Expressions, node: ast.expr) -> bool:
    if isinstance(node, ast.Name | ast.Attribute) and expressions.is_outside(node):
        return isinstance(expressions.unit.outside(node), Task | FunctionType)
    return isinstance(node, ast.Lambda)


def _refuse_function(
    unit: Unit, helper: ast.FunctionDef, parameter: ast.arg, node: ast.expr
) -> None:
    name = parameter.arg
    call = unit.text(node.body) if isinstance(node, ast.Lambda) else f"{unit.text(node)}(…)"
    message = f"`{helper.name}` takes values, and its `{name}` would be a function"
    help_ = f"a `def {helper.name}` inside of the workflow, with `{call}` in place of `{name}(…)`"
    unit.refuse(node, "HF002", message, help_)


def _as_tuple(value: TypedQuery) -> TypedQuery:
    """Return the arguments of `*names`: a tuple, also where they are written as a list."""
    if not isinstance(value.type, ListOf):
        return value
    return value._replace(type=ListOf(value.type.element, is_tuple=True))


def _bound(call: ast.Call, receiver: ast.expr | None) -> ast.Call:
    """Return the call of a method with its object as the first argument."""
    return call if receiver is None else ast.Call(call.func, [receiver, *call.args], call.keywords)


class _Whole(NamedTuple):
    """The arguments of a call: those with a parameter of their own, and the rest as one value."""

    by_place: list[ast.expr]
    by_name: list[ast.keyword]
    rest: ast.Tuple | ast.List | None
    named_rest: ast.Dict | None


def _with_rest(unit: Unit, call: ast.Call, node: ast.FunctionDef) -> _Whole:
    """Gather the arguments of `*names` in a tuple, and those of `**named` in a dict. Both are the
    same nodes each time the call is lowered.
    """
    by_place, by_name = call.args, call.keywords
    rest: ast.Tuple | ast.List | None = None
    named_rest: ast.Dict | None = None
    if node.args.vararg is not None:
        count = len(node.args.posonlyargs) + len(node.args.args)
        more = by_place[count:]
        has_stars = any(isinstance(one, ast.Starred) for one in more)
        rest = ast.List(more, ast.Load()) if has_stars else ast.Tuple(more, ast.Load())
        by_place = by_place[:count]
    if node.args.kwarg is not None:
        own = {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)}
        others = [word for word in by_name if word.arg not in own]
        by_name = [word for word in by_name if word not in others]
        keys: list[ast.expr | None] = [
            None if word.arg is None else ast.Constant(word.arg) for word in others
        ]
        named_rest = ast.Dict(keys, [word.value for word in others])
        for key in filter(None, keys):
            ast.copy_location(key, call.func)
    whole = _Whole(by_place, by_name, rest, named_rest)
    for part in filter(None, (rest, named_rest)):
        ast.copy_location(part, call.func)
    found: _Whole = unit.rest_arguments.setdefault(call.func, whole)
    return found


def _pairs(call: _Whole, node: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr]] | None:
    """Return each argument with its parameter; None when the call does not fit the function."""
    by_place = [*node.args.posonlyargs, *node.args.args]
    by_name = {arg.arg: arg for arg in (*node.args.args, *node.args.kwonlyargs)}
    if len(call.by_place) > len(by_place):
        return None
    if any(isinstance(one, ast.Starred) for one in call.by_place):
        return None
    pairs = list(zip(by_place, call.by_place, strict=False))
    for word in call.by_name:
        if word.arg not in by_name:
            return None
        pairs.append((by_name[word.arg], word.value))
    names = [arg.arg for arg, _ in pairs]
    is_whole = set(names) | _defaults(node).keys() >= {arg.arg for arg in parameters_of(node)}
    if not is_whole or len(set(names)) < len(names):
        return None
    if call.named_rest is not None and None in call.named_rest.keys and by_name:
        # `**named` of the call might hold a parameter of the function.
        return None
    if node.args.vararg is not None and call.rest is not None:
        pairs.append((_rest_parameter(node.args.vararg, "tuple"), call.rest))
    if node.args.kwarg is not None and call.named_rest is not None:
        pairs.append((_rest_parameter(node.args.kwarg, "dict"), call.named_rest))
    return pairs


def _rest_parameter(parameter: ast.arg, kind: str) -> ast.arg:
    """Return `numbers: tuple[int, ...]` for `*numbers: int`, and a dict for `**named: int`."""
    if parameter.annotation is None:
        return parameter
    item, more = parameter.annotation, ast.Constant(...)
    parts = [item, more] if kind == "tuple" else [load("str"), item]
    whole = ast.Subscript(load(kind), ast.Tuple(parts, ast.Load()), ast.Load())
    for part in ast.walk(whole):
        ast.copy_location(part, parameter)
    return ast.copy_location(ast.arg(parameter.arg, whole), parameter)


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
