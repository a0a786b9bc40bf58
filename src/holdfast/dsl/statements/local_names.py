"""Which names a function gives a value: Python holds them to be its own everywhere in it."""

from __future__ import annotations

import ast
from collections.abc import Iterable


def local_names(function: ast.Lambda | ast.FunctionDef) -> tuple[str, ...]:
    """What Python holds to be local to a function, in the order of the source."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    names = {argument.arg: None for argument in arguments}
    body: Iterable[ast.AST] = (
        function.body if isinstance(function, ast.FunctionDef) else [function.body]
    )
    for node in body:
        names.update(dict.fromkeys(bound_names(node)))
    return tuple(names)


def bound_names(node: ast.AST) -> list[str]:
    """The names that a statement gives a value, not looking into other scopes."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.ClassDef(name=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.alias(name=name, asname=other):
            return [other or name.split(".", 1)[0]]
        case ast.expr() if not isinstance(getattr(node, "ctx", None), ast.Store):
            return []
    named: list[str] = []
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        named = [node.name]
    return named + [name for child in ast.iter_child_nodes(node) for name in bound_names(child)]
