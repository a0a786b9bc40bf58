"""`log.info("order %s", order.id)`: a step of the library that writes a line, once.

The text is compiled as the f-string with the same result, so Python and the engine write the same
characters.

The arguments of the step are in the history: logger, level and text. The step writes the line when
it runs. The engine never runs a workflow's code again, so the line is not repeated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from types import ModuleType
from typing import Final

from holdfast.api.library import LEVELS, LOG, library_task
from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.expressions.expressions import Expressions
from holdfast.compiler.expressions.query import Constant, ObjectOf
from holdfast.compiler.ir import TaskAction
from holdfast.compiler.rewriting import located
from holdfast.compiler.steps.step_arguments import refuse, require_value
from holdfast.compiler.types.models import secret_in
from holdfast.compiler.types.types import INT, NONE, describe

_LOGGERS: Final = frozenset({"logging.Logger", "aws_lambda_powertools.logging.logger.Logger"})
#: The forms of `%` formatting. A line of a workflow takes `%s` and `%d` alone.
_ANY_FORM: Final = re.compile(r"%[-+ #0-9.]*[a-zA-Z]")
_OTHER_FORM: Final = re.compile(r"%(?![sd])[-+ #0-9.]*[a-zA-Z]")
_FORM: Final = re.compile(r"%[sd]")
_PIECE: Final = re.compile(r"(%[sd%])")
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


def written_log(expressions: Expressions, node: ast.Call) -> ast.Call:
    """Return the call with one f-string, or one text, as its only argument. Each pass uses the same
    one, because steps may compute its parts.
    """
    known = expressions.unit.library.rewritten.get(node)
    if isinstance(known, ast.Call):
        return known
    if node.keywords or not node.args or any(isinstance(one, ast.Starred) for one in node.args):
        message = "a log line of a workflow is a text and the values of its `%s`"
        raise refuse(expressions, node, "HF047", message, _HELP)
    first, *values = node.args
    if values:
        parts = _parts(expressions, node, first, values)
    elif isinstance(first, ast.Constant | ast.JoinedStr):
        return node
    else:
        parts = [_written(first)]
    whole = located(ast.Call(node.func, [ast.JoinedStr(parts)], []), node)
    expressions.unit.rewritten(node, whole)
    return whole


def lower_log(
    expressions: Expressions, node: ast.Call, written: ast.Call, logger: str
) -> TaskAction:
    """Lower the call `node`, whose text is the argument of `written`."""
    assert isinstance(node.func, ast.Attribute)
    _require_writable(expressions, node)
    text = require_value(expressions, written.args[0])
    level = "error" if node.func.attr == "exception" else node.func.attr
    items = (("logger", Constant(logger)), ("level", Constant(level)), ("message", text.query))
    task = library_task(LOG)
    assert task is not None
    return TaskAction(task, TypedQuery(ObjectOf(items), NONE, text.fails))


def _parts(
    expressions: Expressions, node: ast.Call, first: ast.expr, values: Sequence[ast.expr]
) -> list[ast.expr]:
    """Return the parts of the f-string that has the text of the line."""
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        message = "the text before the values must be written out"
        raise refuse(expressions, first, "HF047", message, _HELP)
    text = first.value.replace("%%", "")
    other = _OTHER_FORM.search(text)
    if other is not None and len(_ANY_FORM.findall(text)) == len(values):
        message = f"the text writes a value with `{other[0]}`, and a log line knows `%s` and `%d`"
        named = expressions.unit.text(values[_ANY_FORM.findall(text).index(other[0])])
        format_ = "!r" if other[0] == "%r" else f":{other[0][1:]}"
        help_ = f'`%s` in place of `{other[0]}`, and f"{{{named}{format_}}}" as its value'
        raise refuse(expressions, node, "HF047", message, help_)
    count = len(_FORM.findall(text))
    if count != len(values) or "%" in _FORM.sub("", text):
        message = f"the text has {count} `%s` or `%d` for {len(values)} values"
        raise refuse(expressions, node, "HF047", message, _HELP)
    rest = iter(values)
    return [
        _written(next(rest))
        if piece in ("%s", "%d")
        else ast.Constant("%" if piece == "%%" else piece)
        for piece in _PIECE.split(first.value)
        if piece
    ]


def _written(value: ast.expr) -> ast.FormattedValue:
    """Return the part of an f-string for a value. It is an f-string of its own, so that a refusal
    of the text points to the value.
    """
    own = ast.copy_location(ast.JoinedStr([ast.FormattedValue(value, -1, None)]), value)
    return ast.FormattedValue(own, -1, None)


def _require_writable(expressions: Expressions, node: ast.Call) -> None:
    """Refuse a secret, and a value whose text with `%d` is not that of `%s`."""
    first, *others = node.args
    text = str(first.value) if isinstance(first, ast.Constant) else ""
    forms = _FORM.findall(text.replace("%%", "")) if others else ["%s"]
    for form, one in zip(forms, others or [first], strict=True):
        type_ = require_value(expressions, one).type
        if secret_in(type_):
            raise refuse(expressions, one, "HF066", "a secret would be written into a log", _HELP)
        if form == "%d" and type_ != INT:
            message = f"`%d` writes an int, not {describe(type_)}"
            raise refuse(expressions, one, "HF047", message, "`%s` in place of `%d`")
