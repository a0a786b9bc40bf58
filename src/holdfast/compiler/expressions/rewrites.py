"""Calls that have the meaning of other expressions: `map(f, xs)` is `(f(one) for one in xs)`.

The other expression is lowered in place of the call. `Unit.library` keeps it, because each pass
must find the same nodes.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

#: The names of users cannot begin so.
_ITEM: Final = "_one"


def plain_form(expressions: Expressions, node: ast.expr) -> ast.expr:
    """Return the expression that has the meaning of the call `node`, or `node` itself."""
    if not isinstance(node, ast.Call) or node.keywords or not expressions.is_outside(node.func):
        return node
    known = expressions.unit.library.rewritten
    if node in known:
        return known[node]
    function = expressions.unit.outside(node.func)
    rule = _RULES.get(function) if isinstance(function, Hashable) else None
    if rule is None or any(isinstance(one, ast.Starred) for one in node.args):
        return node
    made = rule(expressions, node.args)
    if made is None:
        return node
    for part in ast.walk(made):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return expressions.unit.rewritten(node, made)


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _each(value: ast.expr, target: str, items: ast.expr, *tests: ast.expr) -> ast.GeneratorExp:
    loop = ast.comprehension(ast.Name(target, ast.Store()), items, [*tests], 0)
    return ast.GeneratorExp(value, [loop])


def _applied(expressions: Expressions, function: ast.expr) -> tuple[ast.expr, str] | None:
    """Return the call of a function for one item, and the name of the item."""
    match function:
        case ast.Lambda(args=ast.arguments(args=[ast.arg(arg=name)], defaults=[]), body=body):
            return body, name
        case ast.Lambda():
            return None
        case ast.Attribute(attr=method) if expressions.unit.outside(function.value) is str:
            return ast.Call(ast.Attribute(_load(_ITEM), method, ast.Load()), [], []), _ITEM
        case _:
            return ast.Call(function, [_load(_ITEM)], []), _ITEM


def _map(expressions: Expressions, given: list[ast.expr]) -> ast.expr | None:
    applied = _applied(expressions, given[0]) if len(given) == 2 else None
    return None if applied is None else _each(applied[0], applied[1], given[1])


def _filter(expressions: Expressions, given: list[ast.expr]) -> ast.expr | None:
    match given:
        case [ast.Constant(value=None), items]:
            return _each(_load(_ITEM), _ITEM, items, _load(_ITEM))
        case [function, items]:
            applied = _applied(expressions, function)
            return (
                None if applied is None else _each(_load(applied[1]), applied[1], items, applied[0])
            )
    return None


def _chain(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    return ast.List([ast.Starred(one, ast.Load()) for one in given], ast.Load())


def _flattened(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    if len(given) != 1:
        return None
    rows = ast.comprehension(ast.Name("_row", ast.Store()), given[0], [], 0)
    items = ast.comprehension(ast.Name(_ITEM, ast.Store()), _load("_row"), [], 0)
    return ast.GeneratorExp(_load(_ITEM), [rows, items])


def _product(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    """Return `[(a, b) for a in left for b in right]`."""
    if not given:
        return None
    names = [f"{_ITEM}{place}" for place in range(len(given))]
    loops = [
        ast.comprehension(ast.Name(name, ast.Store()), items, [], 0)
        for name, items in zip(names, given, strict=True)
    ]
    return ast.ListComp(ast.Tuple([_load(name) for name in names], ast.Load()), loops)


def _pairwise(expressions: Expressions, given: list[ast.expr]) -> ast.expr | None:
    """Return `zip(items, items[1:])`, if the items stand twice without a second evaluation."""
    if len(given) != 1 or not isinstance(given[0], ast.Name | ast.Attribute):
        return None
    if not expressions.is_builtin("zip"):
        return None
    rest = ast.Subscript(given[0], ast.Slice(ast.Constant(1)), ast.Load())
    return ast.Call(_load("zip"), [given[0], rest], [])


def _from_keys(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    match given:
        case [keys]:
            value: ast.expr = ast.Constant(None)
        case [keys, ast.Constant() as value]:
            pass
        case _:
            return None
    loop = ast.comprehension(ast.Name(_ITEM, ast.Store()), keys, [], 0)
    return ast.DictComp(_load(_ITEM), value, [loop])


_Rule = Callable[["Expressions", list[ast.expr]], ast.expr | None]
_RULES: Final[Mapping[object, _Rule]] = MappingProxyType(
    {
        map: _map,
        filter: _filter,
        itertools.chain: _chain,
        itertools.chain.from_iterable: _flattened,
        itertools.pairwise: _pairwise,
        itertools.product: _product,
        dict.fromkeys: _from_keys,
    }
)
