"""The changes of a list or dict that take something out: `xs.pop()`, `d.setdefault(k, v)`, `del`.

`pop` and `setdefault` give a value, so they run before the statement that holds them, in the way of
a durable call (`steps/hoisting.py`): one Pass assigns the value and what is left together.

    job = jobs.pop(0)    ->   Assign  jobs_pop = $jobs[0], jobs = the others
                              Assign  job = $jobs_pop
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, fails_of
from holdfast.compiler.expressions.query import (
    ArrayOf,
    ComputedEntry,
    Conditional,
    Constant,
    FunctionCall,
    ItemOf,
    QueryTree,
    Variable,
    guard,
    hold,
)
from holdfast.compiler.expressions.removals import (
    without_key,
    without_known_key,
    without_place,
)
from holdfast.compiler.ir import Assign
from holdfast.compiler.statements.changes import changeable, give
from holdfast.compiler.statements.mutators import family_of, refuse_change
from holdfast.compiler.types.types import (
    INT,
    DictOf,
    ListOf,
    describe,
    is_key,
    is_refused,
    join,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_taking(statements: Statements, node: ast.Call) -> TypedQuery:
    """Lower `xs.pop(i)`, `d.pop(key, default)` and `d.setdefault(key, default)`: the value. The
    rest is assigned before.
    """
    assert isinstance(node.func, ast.Attribute)
    assert isinstance(node.func.value, ast.Name)
    name, method = node.func.value.id, node.func.attr
    family = family_of(statements, name)
    values = [statements.expressions.lower(argument) for argument in node.args]
    if not node.keywords and family == "list" and method == "pop" and len(values) <= 1:
        taken = _pop_item
    elif not node.keywords and family == "dict" and method == "pop" and len(values) in (1, 2):
        taken = _pop_key
    elif not node.keywords and family == "dict" and method == "setdefault" and len(values) == 2:
        taken = _set_default
    else:
        return statements.expressions.method(node)
    current = changeable(statements, node, name)
    if current is None or is_refused(*(value.type for value in values)):
        return REFUSED_EXPRESSION
    for argument in node.args:
        statements.share(argument, is_kept=True)
    found = taken(statements, node, current, _evaluated_first(statements, node, name, values))
    if found is None:
        return REFUSED_EXPRESSION
    value, rest = found
    variable = statements.scope.name(f"{name}_{method}", (node, "taken"))
    kept = (statements.scope.name(name), rest)
    statements.emit(Assign(statements.origin(node), ((variable, value), kept)))
    statements.hold(name, rest.type, is_own=True)
    return TypedQuery(Variable(variable), value.type)


_Taken = tuple[TypedQuery, TypedQuery]


def _evaluated_first(
    statements: Statements, node: ast.Call, name: str, values: list[TypedQuery]
) -> list[TypedQuery]:
    """Return the values, with a default that may fail in a variable: Python evaluates the default
    also when the key is there.
    """
    match values:
        case [key, default] if default.fails:
            variable = statements.scope.name(f"{name}_default", (node, "default"))
            statements.emit(Assign(statements.origin(node), ((variable, default),)))
            return [key, TypedQuery(Variable(variable), default.type)]
        case _:
            return values


def _pop_item(
    statements: Statements, node: ast.Call, current: TypedQuery, values: list[TypedQuery]
) -> _Taken | None:
    assert isinstance(current.type, ListOf)
    index = values[0] if values else TypedQuery(Constant(-1), INT)
    if index.type != INT:
        what = f"a place is an int, not {describe(index.type)}"
        refuse_change(statements, node, what, f"{statements.unit.text(node.func)}(0)")
        return None
    text, element = statements.unit.text(node), current.type.element
    item = guard(ItemOf(current.query, index.query), f"IndexError: {text}")
    fails = index.fails | {"IndexError"}
    rest = without_place(current.query, index.query, element, text)
    return TypedQuery(item, element, fails), TypedQuery(rest, current.type, fails)


def _pop_key(
    statements: Statements, node: ast.Call, current: TypedQuery, values: list[TypedQuery]
) -> _Taken | None:
    assert isinstance(current.type, DictOf)
    key, *default = values
    if not is_key(key.type):
        _refuse_key(statements, node)
        return None
    text = statements.unit.text(node)
    found, type_ = FunctionCall("lookup", (current.query, key.query)), current.type.value
    if not default:
        item = TypedQuery(guard(found, f"KeyError: {text}"), type_, key.fails | {"KeyError"})
        rest = without_known_key(current.query, key.query, text)
        return item, TypedQuery(rest, current.type, item.fails)
    value = hold(found, lambda held: _or(held, default[0].query))
    rest = hold(key.query, lambda held: without_key(current.query, held), "_wanted")
    item = TypedQuery(value, join(type_, default[0].type), fails_of(*values))
    return item, TypedQuery(rest, current.type, key.fails)


def _refuse_key(statements: Statements, node: ast.Call) -> None:
    key, *others = map(statements.unit.text, node.args)
    text = f"{statements.unit.text(node.func)}({', '.join((f'str({key})', *others))})"
    refuse_change(statements, node, "a dict of a workflow has text keys", text)


def _or(held: QueryTree, default: QueryTree) -> QueryTree:
    return Conditional(FunctionCall("exists", (held,)), held, default)


def _set_default(
    statements: Statements, node: ast.Call, current: TypedQuery, values: list[TypedQuery]
) -> _Taken | None:
    assert isinstance(current.type, DictOf)
    key, default = values
    if not is_key(key.type):
        _refuse_key(statements, node)
        return None
    found = FunctionCall("lookup", (current.query, key.query))
    entry = ComputedEntry(key.query, default.query)
    longer = FunctionCall("merge", (ArrayOf((current.query, entry)),))
    type_ = join(current.type.value, default.type)
    fails = fails_of(*values)
    item = hold(found, lambda held: _or(held, default.query))
    rest = Conditional(FunctionCall("exists", (found,)), current.query, longer)
    return TypedQuery(item, type_, fails), TypedQuery(rest, DictOf(type_), fails)


# del


def lower_delete(statements: Statements, node: ast.Delete) -> bool:
    """Lower `del xs[i]` and `del d[key]`; False for anything else."""
    for target in node.targets:
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            return False
        if isinstance(target.slice, ast.Slice) or not statements.scope.is_local(target.value.id):
            return False
        if family_of(statements, target.value.id) not in ("list", "dict"):
            return False
    for target in node.targets:
        assert isinstance(target, ast.Subscript)
        assert isinstance(target.value, ast.Name)
        statements.prepare(target.slice)
        _delete(statements, node, target, target.value.id)
    return True


def _delete(statements: Statements, node: ast.Delete, target: ast.Subscript, name: str) -> None:
    key = statements.expressions.lower(target.slice)
    current = changeable(statements, target, name)
    if current is None or is_refused(key.type):
        return
    text = statements.unit.text(target)
    match current.type:
        case ListOf(element) if key.type == INT:
            rest = without_place(current.query, key.query, element, text)
            fails = key.fails | {"IndexError"}
        case DictOf() if is_key(key.type):
            rest = without_known_key(current.query, key.query, text)
            fails = key.fails | {"KeyError"}
        case type_:
            message = f"{describe(type_)} has no items by {describe(key.type)} to delete"
            help_ = f"del {name}[str({statements.unit.text(target.slice)})]"
            if isinstance(type_, ListOf):
                help_ = f"del {name}[0]"
            statements.unit.refuse(target, "HF020", message, help_)
            return
    give(statements, node, name, TypedQuery(rest, current.type, fails))
