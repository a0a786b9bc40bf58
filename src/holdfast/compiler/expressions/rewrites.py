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

from holdfast.compiler.rewriting import load, located

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
    return node if made is None else expressions.unit.rewritten(node, located(made, node))


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
            return ast.Call(ast.Attribute(load(_ITEM), method, ast.Load()), [], []), _ITEM
        case _:
            return ast.Call(function, [load(_ITEM)], []), _ITEM


def _map(expressions: Expressions, given: list[ast.expr]) -> ast.expr | None:
    applied = _applied(expressions, given[0]) if len(given) == 2 else None
    return None if applied is None else _each(applied[0], applied[1], given[1])


def _filter(expressions: Expressions, given: list[ast.expr]) -> ast.expr | None:
    match given:
        case [ast.Constant(value=None), items]:
            return _each(load(_ITEM), _ITEM, items, load(_ITEM))
        case [function, items]:
            applied = _applied(expressions, function)
            return (
                None if applied is None else _each(load(applied[1]), applied[1], items, applied[0])
            )
    return None


def _chain(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    return ast.List([ast.Starred(one, ast.Load()) for one in given], ast.Load())


def _flattened(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    if len(given) != 1:
        return None
    rows = ast.comprehension(ast.Name("_row", ast.Store()), given[0], [], 0)
    items = ast.comprehension(ast.Name(_ITEM, ast.Store()), load("_row"), [], 0)
    return ast.GeneratorExp(load(_ITEM), [rows, items])


def _product(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    """Return `[(a, b) for a in left for b in right]`."""
    if not given:
        return None
    names = [f"{_ITEM}{place}" for place in range(len(given))]
    loops = [
        ast.comprehension(ast.Name(name, ast.Store()), items, [], 0)
        for name, items in zip(names, given, strict=True)
    ]
    return ast.ListComp(ast.Tuple([load(name) for name in names], ast.Load()), loops)


def _pairwise(expressions: Expressions, given: list[ast.expr]) -> ast.expr | None:
    """Return `zip(items, items[1:])`, if the items stand twice without a second evaluation."""
    if len(given) != 1 or not isinstance(given[0], ast.Name | ast.Attribute):
        return None
    if not expressions.is_builtin("zip"):
        return None
    rest = ast.Subscript(given[0], ast.Slice(ast.Constant(1)), ast.Load())
    return ast.Call(load("zip"), [given[0], rest], [])


def _sliced(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    """Return `[*items][start:stop:step]` for constants, of which none is negative."""
    if not 2 <= len(given) <= 4 or not all(map(_is_bound, given[1:])):
        return None
    bounds = [None if getattr(one, "value", None) is None else one for one in given[1:]]
    start, stop, step = [None, *bounds, None] if len(given) == 2 else [*bounds, None][:3]
    if isinstance(step, ast.Constant) and step.value == 0:
        return None
    items = ast.List([ast.Starred(given[0], ast.Load())], ast.Load())
    return ast.Subscript(items, ast.Slice(start, stop, step), ast.Load())


def _is_bound(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or type(node.value) is int)


def _batched(expressions: Expressions, given: list[ast.expr]) -> ast.expr | None:
    """Return `[tuple(items[at : at + n]) for at in range(0, len(items), n)]`, for a constant."""
    match given:
        case [ast.Name() | ast.Attribute() as items, size]:
            count = size.value if isinstance(size, ast.Constant) else expressions.unit.outside(size)
        case _:
            return None
    if type(count) is not int or count < 1:
        return None
    if not all(map(expressions.is_builtin, ("len", "range", "tuple"))):
        return None
    at, number = load("_at"), ast.Constant(count)
    part = ast.Subscript(items, ast.Slice(at, ast.BinOp(at, ast.Add(), number)), ast.Load())
    size_of = ast.Call(load("len"), [items], [])
    places = ast.Call(load("range"), [ast.Constant(0), size_of, number], [])
    loop = ast.comprehension(ast.Name("_at", ast.Store()), places, [], 0)
    return ast.ListComp(ast.Call(load("tuple"), [part], []), [loop])


def _from_keys(_: Expressions, given: list[ast.expr]) -> ast.expr | None:
    match given:
        case [keys]:
            value: ast.expr = ast.Constant(None)
        case [keys, (ast.Constant() | ast.UnaryOp(operand=ast.Constant())) as value]:
            pass
        case _:
            return None
    loop = ast.comprehension(ast.Name(_ITEM, ast.Store()), keys, [], 0)
    return ast.DictComp(load(_ITEM), value, [loop])


#: The functions whose result gives its items once, though its other form is a list.
_ITERATORS: Final = (
    itertools.chain,
    itertools.islice,
    itertools.product,
    getattr(itertools, "batched", None),
)


def gives_iterator(expressions: Expressions, node: ast.Call) -> bool:
    """Return True for `chain(a, b)` and the like, which gives its items only once."""
    if not expressions.is_outside(node.func):
        return False
    found = expressions.unit.outside(node.func)
    return any(found is one for one in _ITERATORS if one is not None)


_Rule = Callable[["Expressions", list[ast.expr]], ast.expr | None]
_RULES: Final[Mapping[object, _Rule]] = MappingProxyType(
    {
        map: _map,
        filter: _filter,
        itertools.chain: _chain,
        itertools.islice: _sliced,
        getattr(itertools, "batched", "batched"): _batched,
        itertools.chain.from_iterable: _flattened,
        itertools.pairwise: _pairwise,
        itertools.product: _product,
        dict.fromkeys: _from_keys,
    }
)
