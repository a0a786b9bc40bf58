"""Changes of the syntax tree of a function, before the compiler reads it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)


def located(made: _Node, node: ast.AST) -> _Node:
    """Return the new code with the place of the old, where it has none of its own."""
    for part in ast.walk(made):
        if not hasattr(part, "lineno") and hasattr(node, "lineno"):
            ast.copy_location(part, node)
    return made


def load(name: str) -> ast.Name:
    """Return the expression that reads a name. It has no place in the source yet."""
    return ast.Name(name, ast.Load())


def parameters_named(*names: str) -> ast.arguments:
    """Return the parameters of a function that takes these names and no others."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def replace_nodes(root: ast.AST, rule: Callable[[ast.AST], ast.AST]) -> None:
    """Replace each node inside of `root` by the result of the rule, the inner ones first.

    There is no recursion here, because an expression may be deeper than Python's stack.
    """
    for node in reversed(list(ast.walk(root))):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                setattr(node, field, rule(value))
            elif isinstance(value, list):
                value[:] = [rule(one) if isinstance(one, ast.AST) else one for one in value]
