"""A list that the workflow changes must not be reachable by a second name.

Python would show the change through both names; a state machine has values, not references. So a
name that is appended to may only be given a fresh list, and may only be read where no second
reference to the list remains.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.dsl.context import Unit

_FRESH_CALLS = frozenset({"list", "sorted"})


def check_aliases(unit: Unit, function: ast.FunctionDef) -> None:
    nodes = tuple(ast.walk(function))
    if not any(_changed_by(node) for node in nodes):
        return
    for body in nodes:
        if isinstance(body, ast.FunctionDef):
            changed = {name for node in _nodes(body) if (name := _changed_by(node)) is not None}
            _check(unit, body, changed)


def _nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    for statement in function.body:
        yield from ast.walk(statement)


def _changed_by(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")):
            return name
        case _:
            return None


def _check(unit: Unit, function: ast.FunctionDef, changed: set[str]) -> None:
    for node in _nodes(function):
        for name in _shared_by(node, changed):
            unit.refuse(
                name,
                "HF023",
                f"`{name.id}` is changed by append(), and this would be a second name for it",
                f"list({name.id})",
            )
        for target, value in _given(node):
            if target.id in changed and not _is_fresh(value):
                unit.refuse(
                    value,
                    "HF023",
                    f"`{target.id}` is changed by append(), so it needs a list of its own",
                    f"{target.id} = list({unit.text(value)})",
                )


def _given(node: ast.AST) -> Iterator[tuple[ast.Name, ast.expr]]:
    """The plain assignments; a loop variable that is appended to is one of its list's items."""
    match node:
        case ast.Assign(targets=[ast.Name() as target], value=value):
            yield target, value
        case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
            yield target, value
        case ast.For(target=target, iter=iterated):
            names = [part for part in ast.walk(target) if isinstance(part, ast.Name)]
            yield from ((name, iterated) for name in names)


def _is_fresh(value: ast.expr) -> bool:
    match value:
        case ast.List() | ast.ListComp() | ast.BinOp():
            return True
        case ast.Subscript(slice=ast.Slice()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            # Any other call that is allowed is a step, and its result is nobody else's.
            return name in _FRESH_CALLS or name not in ("min", "max")
        case ast.Call(func=ast.Attribute()):
            return True
        case _:
            return False


def _shared_by(node: ast.AST, changed: set[str]) -> Iterator[ast.Name]:
    """The names in places where the list itself is kept."""
    kept: list[ast.expr] = []
    match node:
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            kept = [value]
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            kept = parts
        case ast.BoolOp(values=parts):
            kept = parts
        case ast.IfExp(body=body, orelse=orelse):
            kept = [body, orelse]
        case ast.Call(func=ast.Attribute(attr="append"), args=parts):
            kept = parts
        case ast.Call(keywords=keywords):
            kept = [keyword.value for keyword in keywords]
    for part in kept:
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id in changed:
            yield part
