"""Helpers with statements: the body of a `def` is placed before the statement that calls it.

    def settled(order: Order) -> str:          while not is_paid(order.id): …
        while not is_paid(order.id):     ->    return_value = "paid"
            sleep(minutes(1))                  message = "now " & return_value
        return "paid"

    message = f"now {settled(order)}"

Parameters are names for the arguments, and local names have variables of their own. A `return`
assigns its value to a variable and leaves the body (`ir.Leave`). A body whose only `return` is its
last line needs no variable: the expression of its `return` replaces the call.

The handlers and undo steps around the call also apply to errors in the body, because its states are
among those of the caller. A `finally` inside a helper runs before the helper is left.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.compiler.context import (
    REFUSED_EXPRESSION,
    Environment,
    Helper,
    LocalFunction,
    TypedQuery,
    Unit,
)
from holdfast.compiler.expressions.arguments import given_arguments
from holdfast.compiler.expressions.declared import returned_type
from holdfast.compiler.expressions.inlining import refuse_body
from holdfast.compiler.expressions.query import NULL, Variable
from holdfast.compiler.ir import Assign, Inlined, StatementBlock
from holdfast.compiler.statements.aliases import changes_in_place
from holdfast.compiler.statements.functions import (
    Outer,
    copied,
    environment_of,
    name_all,
    refuse_recursion,
    take,
)
from holdfast.compiler.statements.local_names import local_names
from holdfast.compiler.statements.new_values import changes_parameters
from holdfast.compiler.statements.ownership import (
    captured_by,
    chains_in,
    has_parts_that_may_change,
    may_change,
)
from holdfast.compiler.statements.results import Result
from holdfast.compiler.steps.helpers import is_step, keeps_parameters, own_parts
from holdfast.compiler.steps.step_arguments import StepRefused
from holdfast.compiler.types.types import NEVER, NONE, is_refused, join_all

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def inline(statements: Statements, call: ast.Call, helper: Helper) -> TypedQuery:
    """Emit the body of a helper whose arguments are already evaluated, and return its value."""
    try:
        return _inline(statements, call, helper)
    except StepRefused:
        statements.lose(call)
        return REFUSED_EXPRESSION


def _inline(statements: Statements, call: ast.Call, helper: Helper) -> TypedQuery:
    helper = _at(statements, call, helper)
    refuse_recursion(statements, helper.node, call)
    given = given_arguments(statements.expressions, call, helper)
    if given is None:
        raise StepRefused
    if keeps_parameters(helper):
        for one in given:
            if one.node is not None:
                statements.share(one.node, is_kept=True)
    inner = _inside(statements, call, helper)
    take(statements, inner, call, given)
    name_all(inner)
    before = len(statements.unit.diagnostics)
    body = inner.block(inner.unit.functions[inner.scope].body)
    if len(statements.unit.diagnostics) > before and not helper.is_local:
        refuse_body(statements.unit, call, helper.name)
    found = _finish(statements, inner, call, body)
    new, fresh = statements.unit.new_calls, statements.unit.fresh_calls
    is_new = call in fresh and not has_parts_that_may_change(found.type)
    is_new = (is_new or not may_change(found.type)) and not changes_parameters(helper.node)
    (new.add if is_new else new.discard)(call)
    if may_change(found.type) and not is_new:
        nodes = (one.node for one in given if one.node is not None)
        chains = (chain for node in nodes for chain in chains_in(node, statements.is_durable))
        statements.share_parts(chains)
    return found


def _at(statements: Statements, call: ast.Call, helper: Helper) -> Helper:
    """Return the helper that the name refers to at this point."""
    if not helper.is_local:
        return helper
    entry = statements.entry(helper.name)
    if not isinstance(entry, LocalFunction):
        message = f"`{helper.name}` may not be defined here, or be another function"
        help_ = f"put `def {helper.name}` before every line that calls it, once"
        statements.unit.refuse(call, "HF022", message, help_)
        raise StepRefused
    return replace(helper, node=entry.node, sees=entry.scope)


def _inside(statements: Statements, call: ast.Call, helper: Helper) -> Statements:
    here = statements.flow.environment
    assert here is not None
    node = copied(statements.unit, call, helper.node)
    unit = helper.unit
    environment = Environment({})
    if helper.is_local:
        environment = environment_of(statements, LocalFunction(helper.node, helper.sees), here)
    elif changes_in_place(node):
        unit.captured = captured_by(node, lambda part: is_step(unit, helper.sees, part))
    names = local_names(node)
    for name in names:
        environment = environment.without(name)
    scope = unit.scope(statements.scope, node, names, sees=helper.sees, is_inlined=True)
    inner = statements.inner(scope, environment, Outer(statements, here, helper.node), unit)
    inner.flow.protections = statements.flow.protections
    inner.result = _result(unit, node)
    return inner


def _result(unit: Unit, node: ast.FunctionDef) -> Result:
    found = [part for part in own_parts(node) if isinstance(part, ast.Return)]
    last = found[0] if len(found) == 1 and found[0] is node.body[-1] else None
    is_procedure = all(_gives_none(part.value) for part in found)
    return Result(returned_type(unit, node), last, is_procedure)


def _gives_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _finish(
    statements: Statements, inner: Statements, call: ast.Call, body: StatementBlock
) -> TypedQuery:
    result, types = inner.result, inner.flow.returned
    assert result is not None
    origin = statements.origin(call)
    if inner.flow.environment is not None:
        types.append(NONE)
        if result.variable is not None:
            body = (*body, Assign(origin, ((result.variable, TypedQuery(NULL, NONE)),)))
    if result.is_left:
        statements.emit(Inlined(origin, body))
    else:
        statements.emit_all(body)
    fresh = statements.unit.fresh_calls
    (fresh.add if result.is_fresh else fresh.discard)(call)
    if not types:
        return TypedQuery(NULL, NEVER)
    type_ = join_all(types)
    if is_refused(type_):
        return REFUSED_EXPRESSION
    if result.value is not None:
        return result.value._replace(type=type_)
    query = NULL if result.variable is None else Variable(result.variable)
    return TypedQuery(query, type_)
