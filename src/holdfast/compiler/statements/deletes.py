"""`del xs[i]`, `del d[key]`, `del xs[a:b]`, `del name`, and `xs[a:b] = values`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.environment import Environment
from holdfast.compiler.expressions.dict_keys import key_help, sought
from holdfast.compiler.expressions.removals import without_known_key, without_place
from holdfast.compiler.rewriting import load, located
from holdfast.compiler.statements.changes import changeable, give
from holdfast.compiler.statements.levels import OWN, Adding, Stored
from holdfast.compiler.statements.named_failures import named_removal
from holdfast.compiler.statements.parts import change_part, local_chain
from holdfast.compiler.statements.replacements import replacing
from holdfast.compiler.types.types import INT, UNKNOWN, DictOf, ListOf, describe, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_delete(statements: Statements, node: ast.Delete) -> None:
    for target in node.targets:
        match target:
            case ast.Name(id=name) if name in statements.scope.local_names:
                _forget(statements, target)
            case ast.Subscript(value=ast.Name(id=name)) if statements.scope.is_local(name):
                _delete_in(statements, node, target, name)
            case ast.Subscript(value=path) if local_chain(statements, path):
                _delete_part(statements, node, target)
            case _:
                text = statements.unit.text(target)
                message = f"`del {text}` is not part of the workflow language"
                help_ = "give the variable another value"
                statements.unit.refuse(node, "HF001", message, help_)


def _forget(statements: Statements, target: ast.Name) -> None:
    """Lower `del name`: from here on the name has no value."""
    statements.expressions.lower(ast.copy_location(load(target.id), target))
    environment = statements.flow.environment
    if environment is not None:
        statements.flow.environment = environment.without(target.id)


def _delete_part(statements: Statements, node: ast.Delete, target: ast.Subscript) -> None:
    def change(part: ast.Name) -> None:
        inner = ast.Subscript(part, target.slice, ast.Del())
        _delete_in(statements, node, ast.copy_location(inner, target), part.id)

    change_part(statements, node, target.value, change)


def _delete_in(statements: Statements, node: ast.Delete, target: ast.Subscript, name: str) -> None:
    if isinstance(target.slice, ast.Slice):
        _replace(statements, node, target, name, None)
        return
    statements.prepare(target.slice)
    _delete(statements, node, target, name)


def _delete(statements: Statements, node: ast.Delete, target: ast.Subscript, name: str) -> None:
    key = statements.expressions.lower(target.slice)
    current = changeable(statements, target, name)
    if current is None or is_refused(key.type):
        return
    text = statements.unit.text(target)
    named = named_removal(statements, target, current, key)
    key = key if named is None else named
    match current.type:
        case ListOf(element) if key.type == INT:
            rest = without_place(current.query, key.query, element, text)
            fails = key.fails | (set() if named else {"IndexError"})
        case DictOf() as owner if (sought_ := sought(owner, key)) is not None:
            rest = without_known_key(current.query, sought_, text)
            fails = key.fails | (set() if named else {"KeyError"})
        case type_:
            message = f"{describe(type_)} has no items by {describe(key.type)} to delete"
            help_ = f"del {name}[0]"
            if isinstance(type_, DictOf):
                place = key_help(type_, key.type, statements.unit.text(target.slice))
                help_ = f"del {name}[{place}]"
            statements.unit.refuse(target, "HF020", message, help_)
            return
    give(statements, node, name, TypedQuery(rest, current.type, fails))


def lower_slice_assignment(
    statements: Statements, node: ast.AST, target: ast.Subscript, name: str, value: ast.expr
) -> None:
    """Lower `xs[a:b] = values`."""
    _replace(statements, node, target, name, value)


def _replace(
    statements: Statements,
    node: ast.AST,
    target: ast.Subscript,
    name: str,
    value: ast.expr | None,
) -> None:
    """Give the list what is before the slice, the new items, and what is after the slice."""
    part, text = target.slice, statements.unit.text(target)
    assert isinstance(part, ast.Slice)
    if part.step is not None:
        message = f"`{text}`: a slice with a step cannot be changed in place"
        help_ = f"{name} = [one for place, one in enumerate({name}) if place % 2]"
        statements.unit.refuse(target, "HF020", message, help_)
        return
    before = statements.flow.environment
    if value is not None:
        statements.value(value)
    current = changeable(statements, target, name)
    if current is None or is_refused(current.type):
        return
    if not isinstance(current.type, ListOf) or current.type.is_tuple:
        message = f"{describe(current.type)} has no slices to change"
        statements.unit.refuse(target, "HF020", message, f"annotate it: {name}: list[str] = []")
        return
    whole = _around(target, part, value)
    found = statements.expressions.lower(whole)
    if not is_refused(found.type):
        stored = OWN if value is None else _added(statements, target, name, value, before)
        give(statements, node, name, found, stored=stored)


def _added(
    statements: Statements,
    target: ast.Subscript,
    name: str,
    value: ast.expr,
    before: Environment | None,
) -> Stored:
    """Return the levels of the items that `xs[a:b] = values` puts in. `xs[:] = values` replaces all
    items.
    """
    match target.slice:
        case ast.Slice(lower=None, upper=None):
            levels = replacing(statements, target.value, value, before)
            if levels is not None:
                return Stored(levels.owned - 1, levels.alone - 1)
    return Adding(statements, name, before).items(value, UNKNOWN)


def _around(target: ast.Subscript, part: ast.Slice, value: ast.expr | None) -> ast.expr:
    """Return `[*xs[:a], *values, *xs[end:]]`. The end of the slice is where Python finds it, also
    for places below 0 or outside of the list: as many items from its start as `xs[a:b]` has.
    """

    def items(start: ast.expr | None, stop: ast.expr | None) -> ast.expr:
        return ast.Subscript(target.value, ast.Slice(start, stop), ast.Load())

    def size(part: ast.expr) -> ast.expr:
        return ast.Call(load("len"), [part], [])

    parts: list[ast.expr] = [] if part.lower is None else [items(None, part.lower)]
    parts += [] if value is None else [value]
    if part.lower is None and part.upper is not None:
        parts.append(items(part.upper, None))
    elif part.lower is not None and part.upper is not None:
        removed = size(items(part.lower, part.upper))
        end = ast.BinOp(size(items(None, part.lower)), ast.Add(), removed)
        parts.append(items(end, None))
    whole = ast.List([ast.Starred(one, ast.Load()) for one in parts], ast.Load())
    return located(whole, target)
