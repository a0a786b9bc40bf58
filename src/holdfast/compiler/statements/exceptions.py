"""Lowering of `try`, `raise` and `assert`."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.api.error_fields import error_fields, written_cause
from holdfast.asl import error_names
from holdfast.compiler.checks import failures_of, nameless_in
from holdfast.compiler.context import TypedQuery
from holdfast.compiler.environment import Held, join_environments
from holdfast.compiler.expressions.query import Constant, ObjectOf, Variable, invoke
from holdfast.compiler.ir import Assign, ErrorHandler, Failures, If, Raise, Reraise, Try
from holdfast.compiler.statements.error_makers import has_maker, made_cause
from holdfast.compiler.statements.finals import lower_finally
from holdfast.compiler.statements.flow import HandlerPoint, Meeting
from holdfast.compiler.steps.helpers import find_tools
from holdfast.compiler.types.error_fields import coded_names, common_fields, defaults_of
from holdfast.compiler.types.failures import has_plain_text, names_of
from holdfast.compiler.types.types import (
    NONE,
    STR,
    ErrorOf,
    describe,
    is_refused,
    is_text,
    members_of,
)
from holdfast.compiler.walking import walk

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements


# try


def lower_try(statements: Statements, node: ast.Try) -> None:
    if node.finalbody:
        lower_finally(statements, node, lambda: _lower_handled(statements, node))
    else:
        _lower_handled(statements, node)


def _lower_handled(statements: Statements, node: ast.Try) -> None:
    """Lower a `try` without its `finally`."""
    flow = statements.flow
    watcher = Meeting()
    flow.watchers.append(watcher)
    flow.protections += 1
    with _named(statements, node):
        body = statements.block(node.body)
    flow.protections -= 1
    flow.watchers.pop()
    orelse = statements.block(node.orelse)
    end = flow.environment
    failures = failures_of(body)
    nameless = nameless_in(body) if failures.expressions else ""
    handlers: list[ErrorHandler] = []
    for handler in node.handlers:
        flow.environment = watcher.environment
        lowered = _handler(statements, node, handler, (failures, nameless))
        if lowered is not None:
            handlers.append(lowered)
        end = join_environments(end, flow.environment)
    flow.environment = end
    origin = statements.origin(node, "try")
    statements.emit(Try(origin, body, tuple(handlers), orelse, failures))


@contextmanager
def _named(statements: Statements, node: ast.Try) -> Iterator[None]:
    """Record the classes that the handlers name while the body is lowered."""
    with statements.unit.trial():
        classes = [
            cls
            for handler in node.handlers
            for cls in _classes(statements, handler)
            if cls is not Exception or _reads_error(handler)
        ]
    with statements.unit.library.catching(classes):
        yield


def _reads_error(handler: ast.ExceptHandler) -> bool:
    """Return True when a handler uses its error for more than the `from` of another one."""
    causes = {part.cause for part in ast.walk(handler) if isinstance(part, ast.Raise)}
    return any(
        isinstance(part, ast.Name) and part.id == handler.name and part not in causes
        for part in ast.walk(handler)
    )


def _handler(
    statements: Statements,
    around: ast.Try,
    node: ast.ExceptHandler,
    found: tuple[Failures, str],
) -> ErrorHandler | None:
    """Lower a handler. `found`: the errors of the body, and the first expression whose error has no
    name.
    """
    failures, nameless = found
    classes = _classes(statements, node)
    names = names_of(classes, statements.unit.world)
    _refuse_expression_errors(statements, node, classes, (failures, _test_of(statements, around)))
    has_text = not (error_names.ALL in names and failures.expressions)
    flow = statements.flow
    variable = None
    if node.name is not None:
        coded = coded_names(classes, statements.unit.world)
        shown = "" if has_text else nameless
        caught = ErrorOf(has_text, common_fields(classes), coded, nameless=shown)
        variable = statements.hold(node.name, caught)
    spare = statements.scope.name("error", (node, "error"))
    point = HandlerPoint(variable, spare)
    flow.handlers.append(point)
    body = statements.block(node.body)
    flow.handlers.pop()
    if node.name is not None and flow.environment is not None:
        # In Python, too, the name of the caught error has no value after the handler.
        flow.environment = flow.environment.without(node.name)
    if not classes:
        return None
    origin = statements.origin(node)
    return ErrorHandler(origin, classes, names, point.variable, body)


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
    found: tuple[Failures, str],
) -> None:
    failures, test = found
    for cls in classes:
        caught = [name for name in failures.expressions if issubclass(getattr(builtins, name), cls)]
        if caught and cls is not Exception and node.type is not None and failures.children:
            child = min(failures.children)
            statements.unit.refuse(
                node.type,
                "HF032",
                f"`{cls.__name__}` from an expression of `{child}` cannot be caught by its own "
                "name: only `except Exception` sees it (States.QueryEvaluationError)",
                f"test first in `{child}`, or catch it there: `except Exception: raise …`",
            )
        elif caught and cls is not Exception and node.type is not None:
            statements.unit.refuse(
                node.type,
                "HF032",
                f"`{cls.__name__}` from an expression of this `try` cannot be caught by its own "
                "name: only `except Exception` sees it (States.QueryEvaluationError)",
                f"test first ({test}), or do this step in a @pure "
                "function or @task and catch its error",
            )


def _test_of(statements: Statements, node: ast.Try) -> str:
    """Return the test to write instead of a handler for KeyError."""
    for part in (part for statement in node.body for part in walk(statement)):
        if find_tools(statements.unit, statements.scope, part) is not None:
            assert isinstance(part, ast.Call)
            assert isinstance(part.func, ast.Subscript)
            text = statements.unit.text
            return f"`if {text(part.func.slice)} in {text(part.func.value)}: …`"
    return "`if xs`, `if k in d`, `max(xs, default=0)`"


# raise


def lower_raise(statements: Statements, node: ast.Raise) -> None:
    _refuse_odd_cause(statements, node)
    error = node.exc
    caught = None if error is None else _caught(statements, error)
    if error is None or caught is not None:
        _reraise(statements, node, caught)
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
    """Refuse `raise … from …` unless it names the caught error or None: any other expression would
    have to be evaluated.
    """
    is_known = isinstance(_local(statements, node.cause), Held)
    is_none = isinstance(node.cause, ast.Constant) and node.cause.value is None
    if node.cause is not None and not is_known and not is_none:
        help_ = "raise PaymentFailed(…) from err"
        statements.unit.refuse(node.cause, "HF030", "`from` takes the error that was caught", help_)


def _caught(statements: Statements, node: ast.expr) -> TypedQuery | None:
    """Return the value of `node` when it is an error that was caught before, or may be one."""
    if isinstance(node, ast.Call) or statements.expressions.is_outside(node):
        return None
    with statements.unit.trial():
        type_ = statements.expressions.lower(node).type
    is_error = any(isinstance(one, ErrorOf) for one in members_of(type_))
    return statements.value(node) if is_error else None


def _reraise(statements: Statements, node: ast.Raise, caught: TypedQuery | None) -> None:
    origin = statements.origin(node)
    if caught is not None and node.exc is not None:
        if not isinstance(caught.type, ErrorOf):
            text = statements.unit.text(node.exc)
            message = f"`{text}` may be no error here: it is {describe(caught.type)}"
            help_ = f"`assert {text} is not None` on the line before"
            if any(not isinstance(one, ErrorOf) and one != NONE for one in members_of(caught.type)):
                name = text if isinstance(node.exc, ast.Name) else "error"
                line = "" if name == text else f"{name} = {text}\n"
                help_ = f"{line}if isinstance({name}, Exception):\n    raise {name}"
            statements.unit.refuse(node.exc, "HF043", message, help_)
            return
        if not isinstance(caught.query, Variable):
            variable = statements.scope.name("error", (node, "raised"))
            statements.emit(Assign(origin, ((variable, caught),)))
            caught = TypedQuery(Variable(variable), caught.type)
        assert isinstance(caught.query, Variable)
        statements.emit(Reraise(origin, caught.query.name))
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
    if call is not None and has_maker(cls):
        cause = made_cause(statements, call, cls)
        if cause is not None:
            cause = statements.protected(cause, node, "cause")
            statements.emit(Raise(statements.origin(node), cls, cause))
        return
    title = cls.__name__
    if has_plain_text(cls) and defaults_of(cls) is None:
        message = f"a field of `{title}` has a default that is no constant of JSON"
        help_ = "raise it in a task, or give its fields texts, whole numbers, bools or None"
        statements.unit.refuse(name, "HF031", message, help_)
        return
    if not has_plain_text(cls):
        message = f"`{title}` makes its text itself, so that only Python knows it"
        help_ = f"class {title}(TaskError): … without __init__ and __str__"
        if cls.__module__ == "builtins":
            help_ = f'class My{title}(TaskError): ..., then `raise My{title}("…")`'
        statements.unit.refuse(name, "HF031", message, help_)
        return
    if len(arguments) > 1 or (call is not None and call.keywords):
        message = f"`{title}` is raised with one text or nothing"
        statements.unit.refuse(node, "HF031", message, f'raise {title}(f"…")')
        return
    cause = _cause(statements, cls, arguments)
    if cause is not None:
        cause = _with_fields(cause, cls)
        cause = statements.protected(cause, node, "cause")
        statements.emit(Raise(statements.origin(node), cls, cause))


def _cause(
    statements: Statements, cls: type[BaseException], arguments: list[ast.expr]
) -> TypedQuery | None:
    """Return the text of the error's constructor; None when its argument is not a text."""
    if not arguments:
        return TypedQuery(Constant(""), STR)
    cause = statements.value(arguments[0])
    if is_text(cause.type):
        return cause
    if not is_refused(cause.type):
        text = statements.unit.text(arguments[0])
        message = f"`{cls.__name__}` is raised with one text or nothing"
        help_ = f"raise {cls.__name__}(str({text}))"
        if cls is AssertionError:
            help_ = f'assert …, f"{{{text}}}"'
        statements.unit.refuse(arguments[0], "HF031", message, help_)
    return None


def _with_fields(cause: TypedQuery, cls: type[BaseException]) -> TypedQuery:
    """Return the cause of an error that the workflow raises, with the fields' values from the
    class.
    """
    values = defaults_of(cls)
    if values is None or not error_fields(cls):
        return cause
    if isinstance(cause.query, Constant):
        return TypedQuery(Constant(written_cause(str(cause.query.value), values)), STR)
    rows = ObjectOf(tuple((name, Constant(value)) for name, value in values.items()))
    whole = ObjectOf((("message", cause.query), ("fields", rows)))
    return TypedQuery(invoke("string", whole), STR, cause.fails)


# assert


def lower_assert(statements: Statements, node: ast.Assert) -> None:
    """Lower `assert ok, text` as `if not ok: raise AssertionError(text)`."""
    flow = statements.flow
    test = statements.protected(statements.test(node.test), node.test, "test")
    expressions = statements.expressions
    flow.environment = expressions.narrowed(node.test, is_true=False).environment
    failed = statements.collected(lambda: _fail_assertion(statements, node))
    flow.environment = expressions.narrowed(node.test, is_true=True).environment
    origin = statements.origin(node, f"assert {statements.unit.text(node.test)}")
    statements.emit(If(origin, test, (), failed))


def _fail_assertion(statements: Statements, node: ast.Assert) -> None:
    text = [] if node.msg is None else [node.msg]
    cause = _cause(statements, AssertionError, text)
    if cause is not None:
        cause = statements.protected(cause, node, "cause")
        origin = statements.origin(node, "AssertionError")
        statements.emit(Raise(origin, AssertionError, cause))
