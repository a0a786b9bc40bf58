"""Assignments, and `xs.append(v)`, which is one."""

from __future__ import annotations

import ast
import types
import typing
from typing import TYPE_CHECKING, Any

from holdfast.dsl import operators
from holdfast.dsl.context import NOTHING, Expression, Held, Unit
from holdfast.dsl.ir import Assign, Target
from holdfast.dsl.iteration import Leaf, bind, refused_names
from holdfast.dsl.models import fits
from holdfast.dsl.query import Call, items_of
from holdfast.dsl.types import (
    REFUSED,
    UNKNOWN,
    ListOf,
    TupleOf,
    Type,
    describe,
    from_annotation,
    is_list,
    is_refused,
    join,
)

if TYPE_CHECKING:
    from holdfast.dsl.statements import Statements

_SNAPSHOT_HELP = (
    "build a new value instead, e.g. `order = order.model_copy(update={...})` "
    "inside a @pure function"
)


def lower_assignment(statements: Statements, node: ast.Assign) -> None:
    if len(node.targets) != 1:
        statements.unit.refuse(
            node, "HF020", "one assignment gives a value to one target", "a = value; b = a"
        )
        for target in node.targets:
            _hold_refused(statements, target)
        return
    _assign(statements, node, node.targets[0], node.value, None)


def lower_annotated_assignment(statements: Statements, node: ast.AnnAssign) -> None:
    declared = annotated_type(statements.unit, node.annotation)
    if node.value is not None:
        _assign(statements, node, node.target, node.value, declared)


def annotated_type(unit: Unit, node: ast.expr) -> Type:
    """The type that an annotation inside a workflow names; unknown when it names none."""
    found = _annotation(unit, node)
    return UNKNOWN if found is NOTHING else from_annotation(found)


def _annotation(unit: Unit, node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str(text)):
            return _annotation(unit, ast.parse(text, mode="eval").body)
        case ast.Name() | ast.Attribute():
            return unit.outside(node)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = _annotation(unit, left), _annotation(unit, right)
            return NOTHING if NOTHING in sides else typing.Union[sides]  # noqa: UP007
        case ast.Subscript(value=base, slice=ast.Tuple(elts=parts)):
            arguments = tuple(_annotation(unit, part) for part in parts)
        case ast.Subscript(value=base, slice=part):
            arguments = (_annotation(unit, part),)
        case _:
            return NOTHING
    generic = unit.outside(base)
    if NOTHING in (generic, *arguments):
        return NOTHING
    return types.GenericAlias(generic, arguments) if isinstance(generic, type) else NOTHING


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
        case ast.Tuple(elts=parts) if all(isinstance(part, ast.Name) for part in parts):
            _assign_names(statements, node, target, value)
        case _:
            # What the right side does wrong is said too.
            statements.value(value)
            statements.unit.refuse(
                target,
                "HF020",
                "cannot assign to this target in a workflow "
                "(values are JSON snapshots, not shared objects)",
                _SNAPSHOT_HELP,
            )
            _hold_refused(statements, target)


def _hold_refused(statements: Statements, target: ast.expr) -> None:
    for name, _ in refused_names(target):
        if isinstance(name.ctx, ast.Store):
            statements.hold(name.id, REFUSED)


def _assign_name(
    statements: Statements, node: ast.stmt, name: str, value: ast.expr, declared: Type | None
) -> None:
    if isinstance(value, ast.Call) and statements.durable(value) is not None:
        variable = statements.scope.name(name)
        found = statements.step(value, (Target(variable),), node)
        type_ = REFUSED if found is None else found
    else:
        expression = statements.value(value)
        type_ = expression.type
        if not is_refused(type_):
            variable = statements.scope.name(name)
            statements.emit(Assign(statements.origin(node), ((variable, expression),)))
    statements.hold(name, _declared(statements.unit, value, type_, declared))


def _declared(unit: Unit, value: ast.expr, found: Type, declared: Type | None) -> Type:
    if declared is None or is_refused(found):
        return found
    if found == UNKNOWN or fits(found, declared):
        return declared
    message = f"this is {describe(found)}, and the annotation says {describe(declared)}"
    unit.refuse(value, "HF040", message, f"annotate it as {describe(found)}")
    return REFUSED


def _assign_names(
    statements: Statements, node: ast.stmt, target: ast.Tuple, value: ast.expr
) -> None:
    names = [part.id for part in target.elts if isinstance(part, ast.Name)]
    if isinstance(value, ast.Call) and statements.durable(value) is not None:
        targets = [Target(statements.scope.name(name), n) for n, name in enumerate(names)]
        type_ = statements.step(value, tuple(targets), node)
        types_ = _parts(statements, target, REFUSED if type_ is None else type_)
        for name, part in zip(names, types_, strict=True):
            statements.hold(name, part)
        return
    expression = statements.value(value)
    pairs = bind(statements.expressions, target, Leaf(expression.query, expression.type))
    values = tuple(
        (statements.scope.name(bound.id), Expression(held.value, held.type, expression.fails))
        for bound, held in pairs
    )
    if not any(is_refused(part.type) for _, part in values):
        statements.emit(Assign(statements.origin(node), values))
    for bound, held in pairs:
        statements.hold(bound.id, held.type)


def _parts(statements: Statements, target: ast.Tuple, type_: Type) -> tuple[Type, ...]:
    count = len(target.elts)
    if isinstance(type_, TupleOf) and len(type_.elements) == count:
        return type_.elements
    if not is_refused(type_):
        message = f"this gives {describe(type_)}, which has not {count} parts"
        help_ = "take it as one value, or annotate the task `-> tuple[A, B]`"
        statements.unit.refuse(target, "HF040", message, help_)
    return (REFUSED,) * count


def lower_augmented_assignment(statements: Statements, node: ast.AugAssign) -> None:
    unit = statements.unit
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
    read = ast.copy_location(ast.Name(name, ast.Load()), node.target)
    value = statements.value(node.value)
    current = statements.expressions.lower(read)
    if isinstance(current.type, ListOf):
        text = unit.text(node.value)
        help_ = f"{name} = {name} + {text}"
        unit.refuse(node.target, "HF023", "`+=` changes a list in place", help_)
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


def lower_append(statements: Statements, node: ast.Expr, call: ast.Call, name: str) -> None:
    """`xs.append(v)`: the variable gets a longer list."""
    unit = statements.unit
    if len(call.args) != 1 or call.keywords:
        unit.refuse(call, "HF008", "append() takes one value", f"{name}.append(value)")
        return
    if name not in statements.scope.local_names:
        refuse_outer(unit, call.func, name)
        return
    if name in statements.flow.iterated:
        message = f"`{name}` is changed while the loop goes through it"
        unit.refuse(call, "HF023", message, f"for x in list({name}): …")
        return
    value = statements.value(call.args[0])
    environment = statements.flow.environment
    assert environment is not None
    entry = environment.entries.get(name)
    current = statements.expressions.lower(ast.copy_location(ast.Name(name, ast.Load()), call))
    if is_refused(value.type) or is_refused(current.type):
        return
    if not isinstance(current.type, ListOf) or not isinstance(entry, Held):
        message = f"`.append()` on {describe(current.type)} has no JSONata form"
        unit.refuse(call, "HF002", message, f"annotate it: {name}: list[str] = []")
        return
    one = items_of(value.query, is_list=is_list(value.type))
    longer = Expression(Call("append", (current.query, one)), current.type, value.fails)
    variable = statements.scope.name(name)
    statements.emit(Assign(statements.origin(node), ((variable, longer),)))
    statements.hold(name, ListOf(join(current.type.element, value.type)))
