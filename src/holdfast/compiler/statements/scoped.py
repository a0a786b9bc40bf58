"""`with compensating()`, `with timeout(…)` and `with shielded()`. `with receive(…)` is in
`requests`.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from holdfast.api import surface
from holdfast.api.surface import Task, Workflow
from holdfast.compiler.context import UNDO_AFTER_BRANCHES
from holdfast.compiler.environment import LocalFunction, UndoHandle
from holdfast.compiler.ir import (
    Compensate,
    RegisterUndo,
    RunWorkflow,
    SendEvent,
    Shielded,
    StartWorkflow,
    StatementBlock,
    StopExecution,
    TaskAction,
    TimeoutBlock,
)
from holdfast.compiler.rewriting import load, located
from holdfast.compiler.statements.exceptions import lower_try
from holdfast.compiler.statements.requests import lower_receive
from holdfast.compiler.steps.durable import find_outside
from holdfast.compiler.steps.hoisting import hoist_inside
from holdfast.compiler.steps.step_arguments import StepRefused, require_time_out
from holdfast.compiler.types.failures import is_own_name
from holdfast.compiler.types.types import REFUSED

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


def lower_with(statements: Statements, node: ast.With, items: Sequence[ast.withitem]) -> None:
    """Lower `with a(), b():` as `with a():` around `with b():`."""
    item = items[0]
    function = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
    found = None if function is None else statements.unit.outside(function)
    if found is surface.compensating:
        _lower_compensating(statements, node, items)
    elif found is surface.timeout:
        _lower_timeout(statements, node, items)
    elif found is surface.shielded:
        _lower_shielded(statements, node, items)
    elif found is surface.receive:
        lower_receive(statements, node, item, lambda: _lower_inside(statements, node, items))
    elif found is contextlib.suppress:
        _lower_suppress(statements, node, items)
    else:
        statements.unit.refuse(
            node if len(node.items) == 1 else item.context_expr,
            "HF050",
            "a workflow has `with compensating() as undo:`, `with timeout(…):`, `with shielded():` "
            "and `with receive(…) as request:`",
            "context managers do not survive a wait of days; use try/finally and tasks",
        )
        if isinstance(item.optional_vars, ast.Name):
            statements.hold(item.optional_vars.id, REFUSED)
        _lower_inside(statements, node, items)


def _lower_inside(
    statements: Statements, node: ast.With, items: Sequence[ast.withitem]
) -> StatementBlock:
    if len(items) == 1:
        return statements.block(node.body)
    return statements.collected(lambda: lower_with(statements, node, items[1:]))


def _lower_suppress(statements: Statements, node: ast.With, items: Sequence[ast.withitem]) -> None:
    """Lower `with suppress(CardDeclined):` as a `try` whose handler does nothing."""
    call = items[0].context_expr
    assert isinstance(call, ast.Call)
    inner: list[ast.stmt] = node.body
    if len(items) > 1:
        inner = [ast.With(list(items[1:]), node.body)]
    classes = ast.copy_location(ast.Tuple(call.args, ast.Load()), call)
    handler = ast.ExceptHandler(classes, None, [ast.Pass()])
    made = located(ast.Try(inner, [handler], [], []), node)
    lower_try(statements, statements.unit.suppressed.setdefault(items[0], made))


# compensating


def _lower_compensating(
    statements: Statements, node: ast.With, items: Sequence[ast.withitem]
) -> None:
    item = items[0]
    policy = _policy(statements, item.context_expr)
    if not isinstance(item.optional_vars, ast.Name):
        message = "compensating() gives the function that registers undo steps"
        statements.unit.refuse(item.context_expr, "HF050", message, "with compensating() as undo:")
        _lower_inside(statements, node, items)
        return
    name = item.optional_vars.id
    scope, flow = statements.scope, statements.flow
    steps = scope.name(f"{name}_steps", (item, "steps"))
    left = scope.name(f"{name}_left", (item, "left"))
    failure = scope.name("failure", (item, "failure"))
    if flow.environment is not None:
        flow.environment = flow.environment.with_entry(name, UndoHandle(steps, scope))
    flow.protections += 1
    body = _lower_inside(statements, node, items)
    flow.protections -= 1
    if flow.environment is not None:
        flow.environment = flow.environment.without(name)
    origin = statements.origin(node, f"with compensating() as {name}")
    statements.emit(Compensate(origin, steps, left, failure, body, policy == "stop"))


def _policy(statements: Statements, node: ast.expr) -> str:
    """Return what happens after a failed undo step: "continue" or "stop"."""
    match node:
        case ast.Call(args=[], keywords=[]):
            return "continue"
        case ast.Call(
            args=[],
            keywords=[
                ast.keyword(
                    arg="on_undo_failure",
                    value=ast.Constant(value=("continue" | "stop") as policy),
                )
            ],
        ):
            return str(policy)
    message = "compensating() takes one constant: on_undo_failure"
    help_ = 'with compensating(on_undo_failure="stop") as undo:'
    statements.unit.refuse(node, "HF008", message, help_)
    return "continue"


def lower_undo(statements: Statements, node: ast.Expr, call: ast.Call) -> None:
    """Lower `undo(refund, payment.id)`."""
    unit = statements.unit
    assert isinstance(call.func, ast.Name)
    environment = statements.flow.environment
    handle = None if environment is None else environment.entries.get(call.func.id)
    assert isinstance(handle, UndoHandle)
    if handle.scope.frame is not statements.scope.frame:
        unit.refuse(
            call,
            "HF021",
            f"`{call.func.id}` belongs to the enclosing workflow and cannot be called in a branch",
            UNDO_AFTER_BRANCHES,
        )
        return
    function = _undoing(statements, call)
    if function is None:
        message = "an undo step is a task, a workflow, send, start or stop, and its arguments"
        unit.refuse(call, "HF008", message, _undo_help(statements, call))
        return
    hoist_inside(statements, call)
    undone = ast.copy_location(ast.Call(call.args[0], call.args[1:], call.keywords), call)
    found = statements.steps.lower(undone, function)
    if found is None:
        return
    action, _ = found
    assert isinstance(action, TaskAction | RunWorkflow | StartWorkflow | SendEvent | StopExecution)
    name = function.name if isinstance(function, Task | Workflow) else function.__name__
    statements.emit(RegisterUndo(statements.origin(node), handle.steps, name, action))


def _undoing(statements: Statements, call: ast.Call) -> Any:
    """Return the function of an undo step; None for one that is no single state."""
    if not call.args:
        return None
    function = find_outside(statements.unit, statements.scope, call.args[0])
    is_known = isinstance(function, Task | Workflow)
    # Compare by identity: `==` would run code of the author.
    is_known = is_known or any(
        function is one for one in (surface.send, surface.start, surface.stop)
    )
    return function if is_known else None


def _undo_help(statements: Statements, call: ast.Call) -> str:
    register = statements.unit.text(call.func)
    match call.args:
        case [ast.Name(id=name), *_] if _is_function(statements, name):
            return (
                f"put @workflow before `def {name}`, or register each task that it calls: "
                f"{register}(refund, payment.id)"
            )
        case _:
            return f"{register}(refund, payment.id)"


def _is_function(statements: Statements, name: str) -> bool:
    if statements.scope.is_local(name):
        return isinstance(statements.entry(name), LocalFunction)
    found = statements.unit.outside(load(name))
    return isinstance(found, FunctionType) and is_own_name(found.__module__)


# timeout, shielded


def _lower_timeout(statements: Statements, node: ast.With, items: Sequence[ast.withitem]) -> None:
    item = items[0]
    call = item.context_expr
    _refuse_name(statements, item, "with timeout(minutes(30)):")
    seconds = None
    match call:
        case ast.Call(args=[duration], keywords=[]):
            statements.prepare(duration)
            try:
                seconds = require_time_out(statements.expressions, duration, statements)
            except StepRefused:
                pass
            else:
                seconds = statements.protected(seconds, duration, "seconds")
        case _:
            message = "timeout() takes one duration"
            statements.unit.refuse(call, "HF008", message, "with timeout(minutes(30)):")
    body = _lower_inside(statements, node, items)
    if seconds is not None:
        origin = statements.origin(node, f"with {statements.unit.text(call)}")
        statements.emit(TimeoutBlock(origin, seconds, body))


def _lower_shielded(statements: Statements, node: ast.With, items: Sequence[ast.withitem]) -> None:
    item = items[0]
    _refuse_name(statements, item, "with shielded():")
    match item.context_expr:
        case ast.Call(args=[], keywords=[]):
            pass
        case call:
            message = "shielded() takes nothing"
            statements.unit.refuse(call, "HF008", message, "with shielded():")
    body = _lower_inside(statements, node, items)
    statements.emit(Shielded(statements.origin(node, "with shielded()"), body))


def _refuse_name(statements: Statements, item: ast.withitem, help_: str) -> None:
    if item.optional_vars is not None:
        message = "this gives nothing that could have a name"
        statements.unit.refuse(item.optional_vars, "HF050", message, help_)
        if isinstance(item.optional_vars, ast.Name):
            statements.hold(item.optional_vars.id, REFUSED)
