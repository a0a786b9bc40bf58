"""Statements that are one expression: calls of steps, changes in place, and lines of a log.

Any other expression is refused, because a workflow would drop its value.
"""

from __future__ import annotations

import ast
from types import EllipsisType
from typing import TYPE_CHECKING

from holdfast.compiler.context import Dispatch, Helper, Taking, TypedQuery
from holdfast.compiler.environment import UndoHandle
from holdfast.compiler.expressions.query import Constant
from holdfast.compiler.ir import Raise, StepStatement
from holdfast.compiler.statements.aliases import CHANGES
from holdfast.compiler.statements.assignments import lower_assignment
from holdfast.compiler.statements.changes import lower_change
from holdfast.compiler.statements.inner_lists import as_assignment
from holdfast.compiler.statements.mutators import lower_mutator
from holdfast.compiler.statements.parts import change_part_by, is_default, local_chain, with_default
from holdfast.compiler.statements.requests import is_request, lower_request_reply
from holdfast.compiler.statements.scoped import lower_undo
from holdfast.compiler.steps.helpers import find_step
from holdfast.compiler.steps.hoisting import has_durable, hoist_inside, require_safe
from holdfast.compiler.steps.logs import logger_of, lower_log, written_log
from holdfast.compiler.steps.step_arguments import StepRefused
from holdfast.compiler.types.types import NEVER, STR, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_expression_statement(statements: Statements, node: ast.Expr, value: ast.expr) -> None:
    change = as_assignment(statements, node)
    if change is not None:
        lower_assignment(statements, change)
        return
    match value:
        case ast.Constant(value=constant) if isinstance(constant, str | EllipsisType):
            # This is a docstring, or the `...` of an empty body.
            return
        case ast.Call() if (function := statements.durable(value)) is not None:
            if statements.step(value, function, (), node) == NEVER:
                _end_after(statements, node, value)
        case ast.Call() if (logger := logger_of(statements.unit, value)) is not None:
            _log(statements, value, logger)
        case ast.Call() if isinstance(
            find_step(statements.unit, statements.scope, value), Helper | Dispatch
        ):
            statements.prepare(value)
            if statements.hoisted[value].type == NEVER:
                statements.flow.environment = None
        case ast.Call() if isinstance(find_step(statements.unit, statements.scope, value), Taking):
            statements.prepare(value)
        case ast.Call(func=ast.Name(id=name)) if isinstance(statements.entry(name), UndoHandle):
            lower_undo(statements, node, value)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="reply")) if is_request(
            statements.entry(name)
        ):
            lower_request_reply(statements, node, value)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend")) if (
            statements.scope.is_local(name)
        ):
            lower_change(statements, node, value, name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if statements.scope.is_local(
            name
        ) and lower_mutator(statements, node, value, name):
            pass
        case ast.Call(func=ast.Attribute(value=path, attr=method)) if (
            method in CHANGES and local_chain(statements, path)
        ):
            _change_in_part(statements, node, value, path)
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(func=ast.Attribute(attr="setdefault"), args=[_, _]) as default,
                attr=method,
            )
        ) if method in CHANGES and is_default(statements, default):
            if node not in statements.unit.defaults:
                statements.unit.defaults[node] = with_default(node, value, default)
            statements.emit_all(statements.block(statements.unit.defaults[node]))
        case _:
            _without_effect(statements, node, value)


def _end_after(statements: Statements, node: ast.Expr, call: ast.Call) -> None:
    """End the way behind a step that always raises. A result of its task is an error of the
    task, so the state machine never reaches this `raise`.
    """
    text = TypedQuery(Constant(f"`{statements.unit.text(call)}` has returned"), STR)
    statements.emit(Raise(statements.origin(node, "RuntimeError"), RuntimeError, text))
    statements.flow.environment = None


def _change_in_part(statements: Statements, node: ast.Expr, call: ast.Call, path: ast.expr) -> None:
    """Lower `state.items.append(value)` and the like."""

    def change(part: ast.Name, values: list[ast.expr]) -> None:
        assert isinstance(call.func, ast.Attribute)
        function = ast.Attribute(part, call.func.attr, ast.Load())
        function = ast.copy_location(function, call.func)
        changed = ast.copy_location(ast.Call(function, values, call.keywords), call)
        lower_expression_statement(statements, ast.copy_location(ast.Expr(changed), node), changed)

    for argument in call.args:
        # Python reads the part before it evaluates the arguments.
        if has_durable(statements, argument):
            require_safe(statements, path, argument)
    change_part_by(statements, node, path, call.args, change)


def _log(statements: Statements, node: ast.Call, logger: str) -> None:
    try:
        written = written_log(statements.expressions, node)
        hoist_inside(statements, written)
        action = lower_log(statements.expressions, node, written, logger)
    except StepRefused:
        statements.lose(node)
    else:
        statements.emit(StepStatement(statements.origin(node), action, ()))


def _without_effect(statements: Statements, node: ast.Expr, value: ast.expr) -> None:
    if isinstance(value, ast.Call | ast.Await):
        # If the call itself is refused, report only that refusal. It says more than a message
        # about the unused result.
        before = len(statements.unit.diagnostics)
        found = statements.value(value)
        if is_refused(found.type) and len(statements.unit.diagnostics) > before:
            return
    if isinstance(value, ast.Yield | ast.YieldFrom):
        message = "a workflow gives its result at once, with `return`"
        statements.unit.refuse(
            node, "HF011", message, "found.append(x), and `return found` in the end"
        )
        return
    message = "this expression has no effect in a workflow"
    statements.unit.refuse(
        node, "HF011", message, f"remove it, or use it: `x = {statements.unit.text(value)}`"
    )
