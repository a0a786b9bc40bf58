"""Values that Python creates for iteration only: generators, `zip(…)`, `d.keys()`, `d.values()`.

They are no lists: a generator and a zip give their items once, and a view such as `d.keys()` has no
positions and equals nothing. So a workflow can iterate over them, but cannot store them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.rewrites import gives_iterator, plain_form
from holdfast.compiler.steps.durable import find_durable

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def is_lazy(expressions: Expressions, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        is_generator = isinstance(plain_form(expressions, node), ast.GeneratorExp)
        is_generator = is_generator or gives_iterator(expressions, node)
        return is_generator or _is_zip(expressions, node) or is_view(expressions, node)
    return isinstance(node, ast.GeneratorExp)


def is_view(expressions: Expressions, node: ast.expr) -> bool:
    """Return True for `d.keys()` and `d.values()`: they have a length, and several iterations are
    possible.
    """
    match node:
        case ast.Call(func=ast.Attribute(attr="keys" | "values"), args=[], keywords=[]):
            return find_durable(expressions.unit, expressions.scope, node) is None
    return False


def _is_zip(expressions: Expressions, node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="zip")):
            return expressions.is_builtin("zip")
    return False


def refuse_lazy(expressions: Expressions, node: ast.expr) -> TypedQuery:
    if isinstance(node, ast.GeneratorExp):
        return refuse_generator(expressions, node)
    text = expressions.unit.text(node)
    return expressions.unit.refused(
        node, "HF002", f"`{text}` is to be gone through, it is no list", f"list({text})"
    )


def refuse_generator(expressions: Expressions, node: ast.GeneratorExp) -> TypedQuery:
    written = expressions.unit.text(node).removeprefix("(").removesuffix(")")
    message = "a generator gives its items once, and late: when they are asked for"
    return expressions.unit.refused(node, "HF002", message, f"[{written}]")


def late_generator(node: ast.expr) -> ast.GeneratorExp | None:
    """Return the generator whose items a `for` over `node` would compute between its rounds."""
    match node:
        case ast.GeneratorExp():
            return node
        case ast.Call(func=ast.Name(id="enumerate" | "zip"), args=arguments):
            return next(filter(None, map(late_generator, arguments)), None)
    return None
