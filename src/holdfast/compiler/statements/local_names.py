"""The names to which a function assigns: Python treats them as local everywhere in the function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.compiler.walking import walk


def local_names(function: ast.Lambda | ast.FunctionDef) -> tuple[str, ...]:
    """Return the names that Python treats as local to a function, in the order of the source."""
    given = function.args
    arguments = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg)
    names = {argument.arg: None for argument in arguments if argument is not None}
    body: Iterable[ast.AST] = (
        function.body if isinstance(function, ast.FunctionDef) else [function.body]
    )
    for node in body:
        names.update(dict.fromkeys(bound_names(node)))
    return tuple(names)


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names to which a statement assigns, without the names of inner scopes."""
    pending = [node]
    while pending:
        part = pending.pop()
        match part:
            case ast.expr() if not isinstance(getattr(part, "ctx", None), ast.Store):
                yield from _named_inside(part)
                continue
            case ast.Name(id=name):
                yield name
                continue
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
                continue
            case ast.ClassDef(name=name):
                yield name
                continue
            case ast.Import(names=modules) | ast.ImportFrom(names=modules):
                for module in modules:
                    yield module.asname or module.name.split(".", 1)[0]
                continue
            case ast.Starred(value=value):
                pending.append(value)
                continue
            case ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
        pending.extend(reversed(_binding_parts(part)))


def _named_inside(node: ast.expr) -> Iterator[str]:
    """Yield the names that `:=` assigns inside of an expression."""
    for part in walk(node):
        if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name):
            yield part.target.id


#: The fields of statements, targets and patterns whose nodes may assign to names.
_BINDING_FIELDS: Final = frozenset(
    [
        "body",
        "cases",
        "elts",
        "guard",
        "finalbody",
        "handlers",
        "items",
        "kwd_patterns",
        "optional_vars",
        "orelse",
        "pattern",
        "patterns",
        "target",
        "targets",
        "test",
        "iter",
        "value",
        "exc",
        "msg",
        "subject",
        "context_expr",
    ]
)


def _binding_parts(node: ast.AST) -> list[ast.AST]:
    found: list[object] = []
    for name in node._fields:
        if name in _BINDING_FIELDS:
            value = getattr(node, name)
            found += value if isinstance(value, list) else [value]
    return [part for part in found if isinstance(part, ast.AST)]
