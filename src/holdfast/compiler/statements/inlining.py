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

from holdfast.compiler.context import REFUSED_EXPRESSION, Helper, TypedQuery
from holdfast.compiler.environment import Environment, LocalFunction
from holdfast.compiler.expressions.arguments import Given, given_arguments
from holdfast.compiler.expressions.inlining import in_body
from holdfast.compiler.expressions.query import NULL, Variable
from holdfast.compiler.ir import Assign, Inlined
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
from holdfast.compiler.statements.ownership import (
    captured_by,
    chains_in,
    has_parts_that_may_change,
    may_change,
)
from holdfast.compiler.statements.pasting import can_paste, paste
from holdfast.compiler.statements.results import LoweredBody, result_of
from holdfast.compiler.steps.helpers import calls_changing, changed_by, is_step, keeps_parameters
from holdfast.compiler.steps.step_arguments import StepRefused
from holdfast.compiler.types.types import NEVER, NONE, Type, is_refused, join_all

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
    if changed_by(helper) and can_paste(statements, call, helper):
        with in_body(statements.unit, call, helper):
            lowered = paste(statements, call, helper, given)
    else:
        lowered = _in_own_scope(statements, call, helper, given)
    found = _finish(statements, call, lowered)
    _share_result(statements, call, helper, given, found.type)
    return found


def _in_own_scope(
    statements: Statements, call: ast.Call, helper: Helper, given: list[Given]
) -> LoweredBody:
    """Lower the body with variables of its own for its parameters and its local names."""
    if keeps_parameters(helper):
        for one in given:
            if one.node is not None:
                statements.share(one.node, is_kept=True)
    inner = _inside(statements, call, helper)
    take(statements, inner, call, given)
    name_all(inner)
    with in_body(statements.unit, call, helper):
        body = inner.block(inner.unit.functions[inner.scope].body)
    assert inner.result is not None
    is_open = inner.flow.environment is not None
    return LoweredBody(body, inner.result, inner.flow.returned, is_open)


def _share_result(
    statements: Statements, call: ast.Call, helper: Helper, given: list[Given], type_: Type
) -> None:
    """Record that the result of a helper may be a part of its arguments."""
    new, fresh = statements.unit.new_calls, statements.unit.fresh_calls
    is_new = call in fresh and not has_parts_that_may_change(type_)
    is_new = (is_new or not may_change(type_)) and not changed_by(helper)
    (new.add if is_new else new.discard)(call)
    if may_change(type_) and not is_new:
        nodes = (one.node for one in given if one.node is not None)
        chains = (chain for node in nodes for chain in chains_in(node, statements.is_durable))
        statements.share_parts(chains)


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
    elif changes_in_place(node) or calls_changing(unit, helper.sees, node):
        unit.captured = captured_by(node, lambda part: is_step(unit, helper.sees, part), ())
    names = local_names(node)
    for name in names:
        environment = environment.without(name)
    scope = unit.scope(statements.scope, node, names, sees=helper.sees, is_inlined=True)
    inner = statements.inner(scope, environment, Outer(statements, here, helper.node), unit)
    inner.flow.protections = statements.flow.protections
    inner.result = result_of(unit, node)
    return inner


def _finish(statements: Statements, call: ast.Call, lowered: LoweredBody) -> TypedQuery:
    body, result, types, is_open = lowered
    origin = statements.origin(call)
    if is_open:
        types.append(NONE)
        if result.variable is not None:
            body = (*body, Assign(origin, ((result.variable, TypedQuery(NULL, NONE)),)))
    if result.is_left:
        statements.emit(Inlined(origin, body))
    else:
        statements.emit_all(body)
    fresh = statements.unit.fresh_calls
    (fresh.add if result.is_fresh else fresh.discard)(call)
    statements.unit.distinct_calls[call] = result.distinct
    if not types:
        return TypedQuery(NULL, NEVER)
    type_ = join_all(types)
    if is_refused(type_):
        return REFUSED_EXPRESSION
    if result.value is not None:
        return result.value._replace(type=type_)
    query = NULL if result.variable is None else Variable(result.variable)
    return TypedQuery(query, type_)
