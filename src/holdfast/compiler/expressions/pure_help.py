"""Help texts: the `@pure` function to which the author can move a refused expression."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

_TEXT_MAX: Final = 60
_PARAMETERS_MAX: Final = 3


def pure_function(
    node: ast.AST,
    text_of: Callable[[ast.AST], str],
    is_outside: Callable[[ast.expr], bool],
    is_step: Callable[[ast.AST], bool],
) -> str:
    """Return a text such as `def title_of(text: …) -> …: return text.title()`; "" where it would
    not help.

    `text_of` gives the source of a node. Names from outside the workflow do not become parameters.
    A durable call does not become part of the function, where it would be no step: the text has a
    line of its own for it.
    """
    if isinstance(node, ast.Name | ast.Constant) or not isinstance(node, ast.expr):
        return ""
    text, before = text_of(node), ""
    match node:
        case ast.JoinedStr([ast.FormattedValue(value=value)]) if text_of(value) == text:
            # The compiler made this f-string of a value, so the source has only the value.
            text = f"str({text})"
    if not _is_expression(text):
        # The text of `a.total @= 2` is a statement, which no `return` can hold.
        return ""
    steps = [part for part in ast.walk(node) if is_step(part)]
    if steps:
        first, *others = steps
        call = text_of(first)
        if others or first is node or text.count(call) != 1:
            return ""
        before, text = f"x = {call}`, then `", text.replace(call, "x")
    try:
        # Without their brackets, `(y := call())` and `(yield call())` are not expressions.
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return ""
    bound = _bound_in(node)
    used = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    used.sort(key=lambda part: (part.lineno, part.col_offset))
    names = dict.fromkeys(part.id for part in used if part.id not in bound and not is_outside(part))
    if not all(name in text for name in names):
        # The source does not contain the call, which `key=len` only implies.
        return ""
    odd = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Starred)
    is_odd = any(isinstance(part, odd) for part in ast.walk(node))
    if is_odd or len(text) > _TEXT_MAX or not 1 <= len(names) <= _PARAMETERS_MAX:
        return ""
    parameters = ", ".join(f"{name}: …" for name in names)
    return f"{before}def {_title(node)}({parameters}) -> …: return {text}"


def _is_expression(text: str) -> bool:
    try:
        ast.parse(f"({text}\n)", mode="eval")
    except SyntaxError:
        return False
    return True


def _bound_in(node: ast.expr) -> frozenset[str]:
    """Return the names that the expression itself binds, in comprehensions and lambdas."""
    stored = {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    given = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
    return frozenset(stored | given)


def _title(node: ast.expr) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return f"{name.lower().strip('_')}_of"
        case ast.Attribute(attr=name):
            return f"{name.lower().strip('_')}_of"
        case ast.Compare():
            return "is_so"
        case ast.JoinedStr() | ast.FormattedValue():
            return "text_of"
        case _:
            return "value_of"
