"""`groups[key].append(v)` and `groups.setdefault(key, []).append(v)`: a change of an inner list.

The statement becomes `groups[key] = [*groups[key], v]`, and `groups[key].add(v)` for a set
`groups[key] = groups[key] | {v}`. Python would show the change through every
other name of the inner list, so the dict must own its lists: each is made where it is put in, and
none is taken out while it may still change. `owns_inner_lists` reads that off the whole function.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.compiler.rewriting import load, located
from holdfast.compiler.steps.helpers import own_parts

if TYPE_CHECKING:
    from holdfast.compiler.statements.statements import Statements

_METHODS: Final = ("add", "append", "extend")
#: The functions whose result does not contain the list itself. So a later change of the list does
#: not change the result.
_READERS: Final = frozenset(
    {"all", "any", "len", "list", "max", "min", "set", "sorted", "sum", "tuple"}
)
_MAKERS: Final = frozenset({"list", "set", "sorted"})


@dataclass(frozen=True, slots=True)
class InnerChange:
    """`name[key].method(value)`. `default` is the list in `setdefault`; None for a subscript."""

    name: str
    key: ast.expr
    default: ast.expr | None
    method: str
    value: ast.expr


def inner_change(node: ast.AST) -> InnerChange | None:
    """Return the change that the statement makes; None for any other statement."""
    match node:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(
                    value=ast.Subscript(value=ast.Name(id=name), slice=key), attr=method
                ),
                args=[value],
                keywords=[],
            )
        ) if method in _METHODS and not isinstance(key, ast.Slice):
            return InnerChange(name, key, None, method, value)
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(
                    value=ast.Call(
                        func=ast.Attribute(value=ast.Name(id=name), attr="setdefault"),
                        args=[key, default],
                        keywords=[],
                    ),
                    attr=method,
                ),
                args=[value],
                keywords=[],
            )
        ) if method in _METHODS and _is_fresh_list(default):
            return InnerChange(name, key, default, method, value)
        case _:
            return None


def as_assignment(statements: Statements, node: ast.Expr) -> ast.Assign | None:
    """Return the assignment that replaces the statement. None when it is no such change, or when
    another name may refer to the inner list.
    """
    change = inner_change(node)
    function = statements.unit.functions.get(statements.scope)
    if change is None or function is None or not statements.scope.is_local(change.name):
        return None
    known = statements.unit.inner_changes
    if node not in known:
        has_step = any(map(statements.is_durable, ast.walk(change.key)))
        # The lines of a pasted helper do not say when they run: `ownership` decides.
        is_pasted = bool(statements.pasted)
        is_owner = not (has_step or is_pasted) and owns_inner_lists(
            function, change.name, statements.is_durable
        )
        known[node] = _assignment(node, change) if is_owner else None
    return known[node]


def _assignment(node: ast.Expr, change: InnerChange) -> ast.Assign:
    owner = load(change.name)
    before: ast.expr = ast.Subscript(owner, change.key, ast.Load())
    if change.default is not None:
        getter = ast.Attribute(owner, "get", ast.Load())
        before = ast.Call(getter, [change.key, change.default], [])
    target = ast.Subscript(load(change.name), change.key, ast.Store())
    made = ast.Assign([target], _larger(before, change))
    return located(made, node)


def _larger(before: ast.expr, change: InnerChange) -> ast.expr:
    match change.method:
        case "add":
            return ast.BinOp(before, ast.BitOr(), ast.Set([change.value]))
        case "extend":
            more: ast.expr = ast.Starred(change.value, ast.Load())
        case _:
            more = change.value
    return ast.List([ast.Starred(before, ast.Load()), more], ast.Load())


def owns_inner_lists(
    function: ast.FunctionDef, name: str, is_durable: Callable[[ast.AST], bool]
) -> bool:
    """Return True when only the dict `name` refers to its lists while they may change."""
    parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
    changes = [node for node in ast.walk(function) if _changes(node, name)]
    own = [node for node in own_parts(function) if _changes(node, name)]
    # A local function may change a list at each of its calls, so no use is behind the last change.
    lines = [node.end_lineno or node.lineno for node in own if isinstance(node, ast.Expr)]
    last = max(lines) if len(own) == len(changes) else math.inf
    loops = {loop for node in changes for loop in _loops_around(parents, node)}
    for use in ast.walk(function):
        if not isinstance(use, ast.Name) or use.id != name:
            continue
        is_late = use.lineno > last and loops.isdisjoint(_loops_around(parents, use))
        if not (is_late or _keeps_nothing(parents, use, is_durable)):
            return False
    return True


def _changes(node: ast.AST, name: str) -> bool:
    change = inner_change(node)
    return change is not None and change.name == name


def _loops_around(parents: dict[ast.AST, ast.AST], node: ast.AST) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        if isinstance(node, ast.For | ast.While):
            yield node


def _keeps_nothing(
    parents: dict[ast.AST, ast.AST], use: ast.expr, is_durable: Callable[[ast.AST], bool]
) -> bool:
    """Return True when this use of the dict gives no inner list another name."""
    parent = parents[use]
    match parent:
        case ast.Assign(targets=[ast.Name()], value=value) if value is not use:
            return _is_fresh_dict(value)
        case ast.AnnAssign(target=ast.Name(), value=value) if value is not use:
            return value is None or _is_fresh_dict(value)
        case ast.Subscript(value=owner, ctx=ast.Store()) if owner is use:
            put = parents[parent]
            return isinstance(put, ast.Assign) and _is_fresh_list(put.value)
        case ast.Subscript(value=owner) if owner is use:
            return _is_change(parents, parent) or _is_read(parents, parent, is_durable)
        case ast.Attribute(attr="setdefault" | "get"):
            call = parents[parent]
            return _is_change(parents, call) or _is_read(parents, call, is_durable)
        case ast.Attribute(attr="keys") | ast.Return():
            return True
        case _:
            return _is_read(parents, use, is_durable)


def _is_change(parents: dict[ast.AST, ast.AST], inner: ast.AST) -> bool:
    statement = parents.get(parents.get(parents[inner], inner), inner)
    return inner_change(statement) is not None


def _is_read(
    parents: dict[ast.AST, ast.AST], value: ast.AST, is_durable: Callable[[ast.AST], bool]
) -> bool:
    """Return True when the value is tested, counted, copied, or passed to a step, which copies
    it.
    """
    match parents[value]:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[container]):
            return container is value
        case ast.Call(func=ast.Name(id=function)) as call:
            return function in _READERS or is_durable(call)
        case ast.Call() as call:
            return is_durable(call)
        case ast.Subscript(value=owner):
            return owner is value
        case ast.keyword() as keyword:
            return is_durable(parents[keyword])
        case _:
            return False


def _is_fresh_dict(value: ast.expr) -> bool:
    match value:
        case ast.Dict(keys=keys, values=values):
            return None not in keys and all(map(_is_fresh_list, values))
        case ast.DictComp(value=item):
            return _is_fresh_list(item)
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=[]):
            return True
        case _:
            return False


def _is_fresh_list(value: ast.expr) -> bool:
    match value:
        case ast.List() | ast.ListComp() | ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=function)):
            return function in _MAKERS
        case _:
            return False
