"""`return`: it ends the function at once, or after the `finally` bodies around it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.expressions.durations import at_border, refuse_durations, refuse_error
from holdfast.compiler.expressions.error_values import marked
from holdfast.compiler.expressions.query import NULL, Variable
from holdfast.compiler.ir import Return, SourcePlace, Statement, Way
from holdfast.compiler.signatures import signature_of
from holdfast.compiler.statements.results import leaving, lower_result
from holdfast.compiler.steps.task_arguments import can_fit
from holdfast.compiler.types.models import is_bool_for_number
from holdfast.compiler.types.types import (
    BOOL,
    NEVER,
    NONE,
    REFUSED,
    UNKNOWN,
    Type,
    describe,
    describe_exactly,
    has_duration,
    has_error,
    is_refused,
)

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

#: The key of the variable that holds a returned value until the `finally` blocks around the
#: `return` have run.
_RETURNED: Final = ("returned",)


def lower_return(statements: Statements, node: ast.AST, value: ast.expr | None) -> None:
    if statements.result is not None:
        lower_result(statements, node, value)
        return
    flow = statements.flow
    function = None if value is None or flow.finals else statements.durable(value)
    if isinstance(value, ast.Call) and function is not None:
        type_ = statements.step(value, function, None, node)
        if statements.scope.parent is None and type_ is not None:
            type_ = _of_step(statements.unit, value, type_)
    else:
        returned = TypedQuery(NULL, NONE) if value is None else statements.value(value)
        if value is not None and statements.scope.parent is None:
            returned = at_border(statements.unit, value, returned)
        else:
            returned = marked(returned)
        type_ = returned.type
        if flow.finals:
            returned = _kept(statements, returned, node)
            flow.finals[-1].meetings[Way.RETURN].reach(flow.environment)
        returned = statements.protected(returned, node, "returned")
        statements.emit(Return(statements.origin(node), returned))
    is_over = type_ is None or type_ == NEVER
    if value is not None and type_ is not None and not is_over and statements.scope.parent is None:
        _check(statements.unit, value, type_)
    flow.returned.append(REFUSED if type_ is None else type_)
    flow.environment = None


def _of_step(unit: Unit, node: ast.expr, type_: Type) -> Type:
    """Refuse a step as the result whose value has no JSON: no code converts it."""
    if has_duration(type_):
        return refuse_durations(unit, node, type_).type
    return refuse_error(unit, node, type_).type if has_error(type_) else type_


def _check(unit: Unit, node: ast.expr, found: Type) -> None:
    """Refuse a result of another type than the annotation. No code converts the result, and callers
    expect the annotated type.
    """
    wanted = signature_of(unit.function).result
    if is_bool_for_number(found, wanted):
        # Python accepts a bool for an int, but JSON has `true` for it. A caller that computes with
        # the result would fail.
        name = unit.function.__name__
        shown = "a bool" if found == BOOL else describe(found)
        message = f"`{name}` returns {describe_exactly(wanted)} and this is {shown}"
        help_ = "make it an int where it is put in: `int(flag)`"
        unit.refuse(node, "HF040", message, f"int({unit.text(node)})" if found == BOOL else help_)
    elif not can_fit(found, wanted):
        name = unit.function.__name__
        message = (
            f"`{name}` returns {describe_exactly(wanted)} and this is {describe_exactly(found)}"
        )
        unit.refuse(node, "HF040", message, f"def {name}(…) -> {describe(found)}: …")


def _kept(statements: Statements, value: TypedQuery, node: ast.AST) -> TypedQuery:
    """Return the return value from a variable, which holds it while a `finally` body runs."""
    variable = statements.scope.name("returned", _RETURNED)
    if not is_refused(value.type):
        statements.assign(node, (variable, value))
    return TypedQuery(Variable(variable), value.type)


def return_again(statements: Statements, origin: SourcePlace) -> Statement:
    """Continue a `return` after the `finally` body that delayed it."""
    flow = statements.flow
    if statements.result is not None:
        left = leaving(statements, origin)
        flow.environment = None
        return left
    if flow.finals:
        flow.finals[-1].meetings[Way.RETURN].reach(flow.environment)
    flow.environment = None
    variable = Variable(statements.scope.name("returned", _RETURNED))
    return Return(origin, TypedQuery(variable, UNKNOWN))
