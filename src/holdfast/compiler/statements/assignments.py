"""Assignments to names."""

from __future__ import annotations

import ast
import types
import typing
from typing import TYPE_CHECKING, Any

from holdfast.compiler.context import NOTHING, Held, Unit
from holdfast.compiler.expressions import operators
from holdfast.compiler.ir import Assign, Target
from holdfast.compiler.statements.changes import (
    lower_extension,
    lower_item_assignment,
    lower_item_change,
)
from holdfast.compiler.statements.unpacking import give, held, lower_unpacking
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.models import fits
from holdfast.compiler.types.types import (
    DURATION,
    REFUSED,
    UNKNOWN,
    WRITTEN_DURATION,
    ListOf,
    Type,
    describe,
    is_refused,
    join_all,
    members_of,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_assignment(statements: Statements, node: ast.Assign) -> None:
    if len(node.targets) == 1:
        _assign(statements, node, node.targets[0], node.value, None)
    else:
        _assign_to_all(statements, node)


def _assign_to_all(statements: Statements, node: ast.Assign) -> None:
    """`a = b = value`: evaluated once, given to the targets from left to right."""
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


def annotated_type(unit: Unit, node: ast.expr) -> Type:
    """The type that an annotation inside a workflow names; unknown when it names none."""
    try:
        found = _annotation(unit, node)
    except (SyntaxError, TypeError, ValueError):
        return UNKNOWN  # a text that is not an expression, `5 | order`
    return UNKNOWN if found is NOTHING else from_annotation(found)


def _annotation(unit: Unit, node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=(None | types.EllipsisType()) as constant):
            return constant  # `tuple[int, ...]`
        case ast.Constant(value=str(text)):
            return _annotation(unit, ast.parse(text, mode="eval").body)
        case ast.Name() | ast.Attribute():
            return unit.outside(node)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = _annotation(unit, left), _annotation(unit, right)
            return NOTHING if NOTHING in sides else typing.Union[sides]  # noqa: UP007
        case ast.Subscript(value=base, slice=part) if unit.outside(base) is typing.Literal:
            return _literal(part)
        case ast.Subscript(value=base, slice=ast.Tuple(elts=[first, *_])) if (
            unit.outside(base) is typing.Annotated
        ):
            return _annotation(unit, first)
        case ast.Subscript(value=base, slice=ast.Tuple(elts=parts)):
            arguments = tuple(_annotation(unit, part) for part in parts)
        case ast.Subscript(value=base, slice=part):
            arguments = (_annotation(unit, part),)
        case _:
            return NOTHING
    generic = unit.outside(base)
    if NOTHING in (generic, *arguments):
        return NOTHING
    if generic is typing.Optional or generic is typing.Union:
        # `Optional[int]` is `Union[int, None]`.
        members = (*arguments, None) if generic is typing.Optional else arguments
        return typing.Union[members]  # noqa: UP007
    return types.GenericAlias(generic, arguments) if isinstance(generic, type) else NOTHING


def _literal(node: ast.expr) -> Any:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    values = tuple(part.value for part in parts if isinstance(part, ast.Constant))
    return typing.Literal[values] if len(values) == len(parts) else NOTHING


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
            # The errors of the right side are reported, too.
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
        if not is_refused(type_):
            variable = statements.scope.name(name)
            statements.emit(Assign(statements.origin(node), ((variable, expression),)))
    type_ = declared_type(statements.unit, value, type_, declared)
    statements.hold(name, type_, is_own=statements.is_fresh(value))


def declared_type(unit: Unit, value: ast.expr, found: Type, declared: Type | None) -> Type:
    """The type of a value of type `found` for a name that is annotated with `declared`."""
    if declared in (None, UNKNOWN) or is_refused(found):
        return found  # An annotation with `Any` removes no known type
    if DURATION in members_of(found):
        # In this position a duration is a number; the annotation means the same.
        declared = join_all(
            DURATION if member == WRITTEN_DURATION else member for member in members_of(declared)
        )
    if found == UNKNOWN or fits(found, declared):
        return declared
    message = f"this is {describe(found)}, and the annotation says {describe(declared)}"
    unit.refuse(value, "HF040", message, f"annotate it as {describe(found)}")
    return REFUSED


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
