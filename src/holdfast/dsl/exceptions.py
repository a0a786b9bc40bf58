"""`try`, `raise` and `with compensating()`."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, Any

from holdfast.dsl import surface
from holdfast.dsl.checks import Failures, failures_of
from holdfast.dsl.context import Environment, Expression, Held, UndoHandle, join_environments
from holdfast.dsl.failures import ALL, has_plain_text, names_of
from holdfast.dsl.flow import HandlerPoint, Meeting
from holdfast.dsl.hoisting import hoist_inside
from holdfast.dsl.ir import Block, Compensate, Handler, Raise, Register, Reraise, Try
from holdfast.dsl.query import Constant, Variable
from holdfast.dsl.surface import Task
from holdfast.dsl.types import REFUSED, STR, ErrorOf, is_refused, is_text

if TYPE_CHECKING:
    from holdfast.dsl.statements import Statements


# try


def lower_try(statements: Statements, node: ast.Try) -> None:
    _refuse_other_parts(statements, node)
    flow = statements.flow
    watcher = Meeting()
    flow.watchers.append(watcher)
    flow.protections += 1
    body = statements.block(node.body)
    flow.protections -= 1
    flow.watchers.pop()
    end = flow.environment
    handlers: list[Handler] = []
    for handler in node.handlers:
        flow.environment = watcher.environment
        lowered = _handler(statements, handler, failures_of(body))
        if lowered is not None:
            handlers.append(lowered)
        end = join_environments(end, flow.environment)
    flow.environment = end
    statements.emit(Try(statements.origin(node, "try"), body, tuple(handlers)))


def _refuse_other_parts(statements: Statements, node: ast.Try) -> None:
    parts = (("else", node.orelse), ("finally", node.finalbody))
    helps = {
        "else": "put it after the last line of the try body, or behind the whole `try`",
        "finally": "with compensating() as undo: …, for what must be taken back after an error",
    }
    for name, nodes in parts:
        if nodes:
            message = f"`{name}` of a try is not part of the workflow language"
            statements.unit.refuse(nodes[0], "HF030", message, helps[name])


def _handler(statements: Statements, node: ast.ExceptHandler, failures: Failures) -> Handler | None:
    classes = _classes(statements, node)
    names = names_of(classes, statements.unit.world)
    _refuse_expression_errors(statements, node, classes, failures)
    has_text = not (ALL in names and failures.expressions)
    flow = statements.flow
    variable = None
    if node.name is not None:
        variable = statements.hold(node.name, ErrorOf(has_text))
    spare = statements.scope.name("error", (node, "error"))
    point = HandlerPoint(variable, spare)
    flow.handlers.append(point)
    body = statements.block(node.body)
    flow.handlers.pop()
    if node.name is not None and flow.environment is not None:
        # Python deletes the name here.
        flow.environment = flow.environment.without(node.name)
    if not classes:
        return None
    origin = statements.origin(node)
    return Handler(origin, classes, names, point.variable, body)


def _classes(statements: Statements, node: ast.ExceptHandler) -> tuple[type[BaseException], ...]:
    match node.type:
        case None:
            statements.unit.refuse(
                node,
                "HF030",
                "a bare `except:` also catches what ends a process",
                "except Exception:",
            )
            return ()
        case ast.Tuple(elts=parts):
            nodes = parts
        case one:
            nodes = [one]
    found = [_class(statements, part) for part in nodes]
    return tuple(cls for cls in found if cls is not None)


def _class(statements: Statements, node: ast.expr) -> type[BaseException] | None:
    found: Any = statements.unit.outside(node)
    if isinstance(found, type) and issubclass(found, Exception):
        return found
    text = statements.unit.text(node)
    message = f"`{text}` is no class of errors that a workflow can catch or raise"
    help_ = "class OutOfStock(TaskError): … at the top of a module"
    statements.unit.refuse(node, "HF030", message, help_)
    return None


def _refuse_expression_errors(
    statements: Statements,
    node: ast.ExceptHandler,
    classes: tuple[type[BaseException], ...],
    failures: Failures,
) -> None:
    for cls in classes:
        caught = [name for name in failures.expressions if issubclass(getattr(builtins, name), cls)]
        if caught and cls is not Exception and node.type is not None:
            statements.unit.refuse(
                node.type,
                "HF032",
                f"`{cls.__name__}` from a workflow expression cannot be caught by its own name: "
                "only `except Exception` sees it (States.QueryEvaluationError)",
                "test first (`if k in d`, `d.get(k, default)`), or do this step in a @pure "
                "function or @task and catch its error",
            )


# raise


def lower_raise(statements: Statements, node: ast.Raise) -> None:
    _refuse_odd_cause(statements, node)
    error = node.exc
    entry = _local(statements, error)
    if error is None or (isinstance(entry, Held) and isinstance(entry.type, ErrorOf)):
        _reraise(statements, node, entry)
    elif isinstance(error, ast.Call):
        _raise(statements, node, error.func, error)
    else:
        _raise(statements, node, error, None)
    statements.flow.environment = None


def _local(statements: Statements, node: ast.expr | None) -> object:
    environment = statements.flow.environment
    if isinstance(node, ast.Name) and environment is not None:
        return environment.entries.get(node.id)
    return None


def _refuse_odd_cause(statements: Statements, node: ast.Raise) -> None:
    """`from err` changes neither the name nor the text; anything else would have to be run."""
    is_known = isinstance(_local(statements, node.cause), Held)
    is_none = isinstance(node.cause, ast.Constant) and node.cause.value is None
    if node.cause is not None and not is_known and not is_none:
        help_ = "raise PaymentFailed(…) from err"
        statements.unit.refuse(node.cause, "HF030", "`from` takes the error that was caught", help_)


def _reraise(statements: Statements, node: ast.Raise, entry: object) -> None:
    origin = statements.origin(node)
    if isinstance(entry, Held) and isinstance(entry.value, Variable):
        statements.emit(Reraise(origin, entry.value.name))
    elif statements.flow.handlers:
        statements.emit(Reraise(origin, statements.flow.handlers[-1].require_variable()))
    else:
        help_ = 'raise OutOfStock("nothing left")'
        statements.unit.refuse(node, "HF030", "there is no error here to raise again", help_)


def _raise(statements: Statements, node: ast.Raise, name: ast.expr, call: ast.Call | None) -> None:
    cls = _class(statements, name)
    arguments = [] if call is None else call.args
    if cls is None:
        return
    title = cls.__name__
    if not has_plain_text(cls):
        message = f"`{title}` makes its text itself, so that only Python knows it"
        help_ = f"class {title}(TaskError): … without __init__ and __str__"
        statements.unit.refuse(name, "HF031", message, help_)
        return
    if len(arguments) > 1 or (call is not None and call.keywords):
        message = f"`{title}` is raised with one text or nothing"
        statements.unit.refuse(node, "HF031", message, f'raise {title}(f"…")')
        return
    cause = Expression(Constant(""), STR)
    if arguments:
        cause = statements.value(arguments[0])
        if not is_text(cause.type):
            if not is_refused(cause.type):
                message = f"`{title}` is raised with one text or nothing"
                help_ = f"raise {title}(str({statements.unit.text(arguments[0])}))"
                statements.unit.refuse(arguments[0], "HF031", message, help_)
            return
    cause = statements.protected(cause, node, "cause")
    statements.emit(Raise(statements.origin(node), cls, cause))


# with compensating() as undo


def lower_with(statements: Statements, node: ast.With) -> None:
    unit = statements.unit
    match node.items:
        case [ast.withitem(ast.Call(func=function, args=[], keywords=[]), ast.Name(id=name))] if (
            unit.outside(function) is surface.compensating
        ):
            pass
        case _:
            unit.refuse(
                node,
                "HF050",
                "only `with compensating() as undo:` is supported",
                "context managers do not survive a wait of days; use try/except and tasks",
            )
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    statements.hold(item.optional_vars.id, REFUSED)
            statements.block(node.body)
            return
    scope, flow = statements.scope, statements.flow
    steps = scope.name(f"{name}_steps", (node, "steps"))
    left = scope.name(f"{name}_left", (node, "left"))
    failure = scope.name("failure", (node, "failure"))
    _enter(flow.environment, statements, name, UndoHandle(steps, scope))
    flow.protections += 1
    body: Block = statements.block(node.body)
    flow.protections -= 1
    if flow.environment is not None:
        flow.environment = flow.environment.without(name)
    origin = statements.origin(node, f"with compensating() as {name}")
    statements.emit(Compensate(origin, steps, left, failure, body))


def _enter(
    environment: Environment | None, statements: Statements, name: str, handle: UndoHandle
) -> None:
    if environment is not None:
        statements.flow.environment = environment.with_entry(name, handle)


def lower_undo(statements: Statements, node: ast.Expr, call: ast.Call) -> None:
    """`undo(refund, payment.id)`."""
    unit = statements.unit
    assert isinstance(call.func, ast.Name)
    environment = statements.flow.environment
    handle = None if environment is None else environment.entries.get(call.func.id)
    assert isinstance(handle, UndoHandle)
    if handle.scope is not statements.scope:
        unit.refuse(
            call,
            "HF021",
            f"`{call.func.id}` belongs to the enclosing workflow and cannot be called in a branch",
            "return what is needed from the branch, and register the undo step afterwards",
        )
        return
    task = unit.outside(call.args[0]) if call.args else None
    if not isinstance(task, Task):
        unit.refuse(
            call,
            "HF008",
            "an undo step is a task and its arguments",
            f"{call.func.id}(refund, payment.id)",
        )
        return
    hoist_inside(statements, call)
    arguments = statements.steps.arguments(call, task, skip=1)
    if arguments is not None:
        statements.emit(Register(statements.origin(node), handle.steps, task, arguments))
