"""`log.info("order %s", order.id)`: a step of the library that writes a line, once.

The arguments of the step are in the history: logger, level and text. The step writes the line when
it runs. The engine never runs a workflow's code again, so the line is not repeated.
"""

from __future__ import annotations

import ast
import re
from types import ModuleType
from typing import Final

from holdfast.api.library import LEVELS, LOG, library_task
from holdfast.compiler.context import TypedQuery, Unit, fails_of
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import Binary, Constant, FunctionCall, ObjectOf, QueryTree
from holdfast.compiler.expressions.text import text_of
from holdfast.compiler.ir import TaskAction
from holdfast.compiler.steps.step_arguments import refuse, require_value
from holdfast.compiler.types.models import secret_in
from holdfast.compiler.types.types import NONE, is_refused, is_text

_LOGGERS: Final = frozenset({"logging.Logger", "aws_lambda_powertools.logging.logger.Logger"})
#: The forms of `%` formatting. A line of a workflow takes `%s` and `%d` alone.
_ANY_FORM: Final = re.compile(r"%[-+ #0-9.]*[a-zA-Z]")
_OTHER_FORM: Final = re.compile(r"%(?![sd])[-+ #0-9.]*[a-zA-Z]")
_HELP: Final = 'log.info("order %s has %s lines", order.id, len(order.lines))'


def logger_of(unit: Unit, node: ast.AST) -> str | None:
    """Return the name of the logger to which a call writes; None for any other node.

    It is a `logging.Logger`, `logging` itself, or the Logger of Powertools for AWS Lambda.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr=level)) if level in LEVELS:
            found = unit.outside(base)
        case _:
            return None
    if isinstance(found, ModuleType):
        return "root" if found.__name__ == "logging" else None
    # Compare the names of the classes. To compare the classes the compiler would have to import the
    # libraries of the loggers.
    kinds = {f"{cls.__module__}.{cls.__name__}" for cls in type(found).__mro__}
    return None if kinds.isdisjoint(_LOGGERS) else str(found.name)


def lower_log(expressions: Expressions, node: ast.Call, logger: str) -> TaskAction:
    assert isinstance(node.func, ast.Attribute)
    if node.keywords or not node.args or any(isinstance(one, ast.Starred) for one in node.args):
        message = "a log line of a workflow is a text and the values of its `%s`"
        raise refuse(expressions, node, "HF047", message, _HELP)
    level = "error" if node.func.attr == "exception" else node.func.attr
    text = _text(expressions, node)
    items = (("logger", Constant(logger)), ("level", Constant(level)), ("message", text.query))
    task = library_task(LOG)
    assert task is not None
    return TaskAction(task, TypedQuery(ObjectOf(items), NONE, text.fails))


def _text(expressions: Expressions, node: ast.Call) -> TypedQuery:
    first, *others = node.args
    if not others:
        value = require_value(expressions, first)
        return _written(expressions, first, value)
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        message = "the text before the values must be written out"
        raise refuse(expressions, first, "HF047", message, _HELP)
    parts = first.value.replace("%d", "%s").split("%s")
    other = _OTHER_FORM.search(first.value.replace("%%", ""))
    if other is not None and len(_ANY_FORM.findall(first.value.replace("%%", ""))) == len(others):
        message = f"the text writes a value with `{other[0]}`, and a log line knows `%s` and `%d`"
        named = expressions.unit.text(others[_position(first.value, other[0])])
        format_ = "!r" if other[0] == "%r" else f":{other[0][1:]}"
        help_ = f'`%s` in place of `{other[0]}`, and f"{{{named}{format_}}}" as its value'
        raise refuse(expressions, node, "HF047", message, help_)
    if len(parts) != len(others) + 1 or any("%" in part.replace("%%", "") for part in parts):
        message = f"the text has {len(parts) - 1} `%s` or `%d` for {len(others)} values"
        raise refuse(expressions, node, "HF047", message, _HELP)
    values = [_written(expressions, one, require_value(expressions, one)) for one in others]
    query: QueryTree = Constant(parts[0].replace("%%", "%"))
    for value, part in zip(values, parts[1:], strict=True):
        query = Binary("&", query, value.query)
        if part:
            query = Binary("&", query, Constant(part.replace("%%", "%")))
    return TypedQuery(query, NONE, fails_of(*values))


def _position(text: str, form: str) -> int:
    """Return which value of the line is written in this form."""
    return _ANY_FORM.findall(text.replace("%%", "")).index(form)


def _written(expressions: Expressions, node: ast.expr, value: TypedQuery) -> TypedQuery:
    """Return the text of a value; JSON if Python's own text has no exact form."""
    if secret_in(value.type):
        raise refuse(expressions, node, "HF066", "a secret would be written into a log", _HELP)
    if is_text(value.type):
        return value
    with expressions.unit.trial():
        found = text_of(expressions.unit, node, value)
    if is_refused(found.type):
        return TypedQuery(FunctionCall("string", (value.query,)), NONE, value.fails)
    return found
