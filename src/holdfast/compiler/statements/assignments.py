"""Assignments to names."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import Held, Unit
from holdfast.compiler.expressions import operators
from holdfast.compiler.expressions.declared import annotated_type, declared_type
from holdfast.compiler.expressions.typed_dicts import displayed
from holdfast.compiler.ir import Assign, Target
from holdfast.compiler.statements.changes import (
    lower_extension,
    lower_item_assignment,
    lower_item_change,
)
from holdfast.compiler.statements.mutators import lower_merge
from holdfast.compiler.statements.unpacking import give, held, lower_unpacking
from holdfast.compiler.types.types import REFUSED, ListOf, Type, TypedDictOf, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_assignment(statements: Statements, node: ast.Assign) -> None:
    if len(node.targets) == 1:
        _assign(statements, node, node.targets[0], node.value, None)
    else:
        _assign_to_all(statements, node)


def _assign_to_all(statements: Statements, node: ast.Assign) -> None:
    """Lower `a = b = value`: the value is evaluated once, and the targets get it from left to
    right.
    """
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    function = statements.durable(node.value) if len(names) == len(node.targets) else None
    if isinstance(node.value, ast.Call) and function is not None:
        assert isinstance(node.value, ast.Call)
        targets = tuple(Target(statements.scope.name(name)) for name in names)
        found = statements.step(node.value, function, targets, node)
        for name in names:
            statements.hold(name, REFUSED if found is None else found)
        return
    value = held(statements, node, statements.value(node.value))
    for target in node.targets:
        give(statements, node, target, value)


def lower_annotated_assignment(statements: Statements, node: ast.AnnAssign) -> None:
    declared = annotated_type(statements.unit, node.annotation)
    if node.value is not None:
        _assign(statements, node, node.target, node.value, declared)


def _assign(
    statements: Statements,
    node: ast.stmt,
    target: ast.expr,
    value: ast.expr,
    declared: Type | None,
) -> None:
    match target:
        case ast.Name(id=name):
            _assign_name(statements, node, name, value, declared)
        case ast.Subscript(value=ast.Name(id=name)) if statements.scope.is_local(name):
            lower_item_assignment(statements, node, target, name, value)
        case ast.Tuple() | ast.List():
            lower_unpacking(statements, node, target, value)
        case _:
            # The target is refused. Lower the right side all the same, so that its own refusals are
            # reported in the same run.
            give(statements, node, target, statements.value(value))


def _assign_name(
    statements: Statements, node: ast.stmt, name: str, value: ast.expr, declared: Type | None
) -> None:
    function = statements.durable(value)
    if isinstance(value, ast.Call) and function is not None:
        variable = statements.scope.name(name)
        found = statements.step(value, function, (Target(variable),), node)
        type_ = REFUSED if found is None else found
    else:
        expression = statements.value(value)
        type_ = expression.type
        if isinstance(declared, TypedDictOf) and isinstance(value, ast.Dict):
            type_ = displayed(statements.expressions, value, declared)
        if not is_refused(type_):
            variable = statements.scope.name(name)
            statements.emit(Assign(statements.origin(node), ((variable, expression),)))
    type_ = declared_type(statements.unit, value, type_, declared)
    statements.hold(name, type_, is_own=statements.is_fresh(value))


def lower_augmented_assignment(statements: Statements, node: ast.AugAssign) -> None:
    unit = statements.unit
    match node.target:
        case ast.Subscript(value=ast.Name(id=name)) as item if statements.scope.is_local(name):
            lower_item_change(statements, node, item, name)
            return
    if not isinstance(node.target, ast.Name):
        statements.value(node.value)
        help_ = "total = total + line.qty"
        unit.refuse(node.target, "HF000", "augmented assignment needs a plain name", help_)
        return
    name = node.target.id
    environment = statements.flow.environment
    assert environment is not None
    parent = statements.scope.parent
    if name not in environment.entries and parent is not None and parent.is_local(name):
        refuse_outer(unit, node.target, name)
        statements.hold(name, REFUSED)
        return
    entry = environment.entries.get(name)
    if isinstance(entry, Held) and isinstance(entry.type, ListOf) and isinstance(node.op, ast.Add):
        lower_extension(statements, node, name)
        return
    if isinstance(entry, Held) and lower_merge(statements, node, name):
        return
    read = ast.copy_location(ast.Name(name, ast.Load()), node.target)
    value = statements.value(node.value)
    current = statements.expressions.lower(read)
    if isinstance(current.type, ListOf):
        symbol = operators.SYMBOLS.get(type(node.op), "+")
        help_ = f"{name} = {name} {symbol} {unit.text(node.value)}"
        unit.refuse(node.target, "HF023", f"`{symbol}=` changes a list in place", help_)
        return
    result = operators.arithmetic(unit, node, node.op, current, value)
    if not is_refused(result.type):
        variable = statements.scope.name(name)
        statements.emit(Assign(statements.origin(node), ((variable, result),)))
    statements.hold(name, result.type)


def refuse_outer(unit: Unit, node: ast.AST, name: str) -> None:
    unit.refuse(
        node,
        "HF021",
        f"`{name}` belongs to the enclosing workflow and cannot be assigned from a branch",
        "return the value from the branch and combine the results afterwards",
    )
