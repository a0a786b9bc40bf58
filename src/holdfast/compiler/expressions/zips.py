"""`zip`: it ends with the shortest list; with `strict=True` lists of different lengths are an
error.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, fails_of
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    QueryTree,
    failure,
    hold,
    invoke,
)
from holdfast.compiler.types.types import BOOL, REFUSED, ListOf, TupleOf, element_of, is_refused

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

_HELP = "zip(names, amounts), zip(names, amounts, strict=True)"


def lower_zip(lowering: Expressions, node: ast.Call) -> TypedQuery:
    is_strict = _strictness(node)
    if len(node.args) < 2 or is_strict is None:
        message = "`zip()` takes two or more lists in a workflow, and `strict=` a constant"
        return lowering.unit.refused(node, "HF002", message, _HELP)
    lists = [lowering.iterable(argument) for argument in node.args]
    if any(is_refused(items.type) for items in lists):
        return REFUSED_EXPRESSION
    type_ = ListOf(TupleOf(tuple(element_of(items.type) or REFUSED for items in lists)))
    if not is_strict:
        query: QueryTree = invoke("zip", *(items.query for items in lists))
        return TypedQuery(query, type_, fails_of(*lists))
    return TypedQuery(_checked(lists, ()), type_, fails_of(*lists) | {"ValueError"})


def _strictness(node: ast.Call) -> bool | None:
    match node.keywords:
        case []:
            return False
        case [ast.keyword(arg="strict", value=ast.Constant(value=bool(is_strict)))]:
            return is_strict
        case _:
            return None


def _checked(lists: list[TypedQuery], held: tuple[QueryTree, ...]) -> QueryTree:
    """Return the zip with a check of the lengths. Each list is evaluated once, in the order of the
    arguments.
    """
    if len(held) < len(lists):
        name = f"_zip_{len(held) + 1}"
        return hold(lists[len(held)].query, lambda one: _checked(lists, (*held, one)), name)
    return Conditional(_uneven(held), uneven_failure(), invoke("zip", *held))


def _uneven(lists: tuple[QueryTree, ...]) -> QueryTree:
    first, *others = (invoke("count", items) for items in lists)
    tests: list[QueryTree] = [Binary("!=", first, other) for other in others]
    found = tests[0]
    for test in tests[1:]:
        found = Binary("or", found, test)
    return found


def uneven_failure() -> QueryTree:
    return failure("ValueError: the arguments of zip() have different lengths")


# A `for` over a strict zip first runs its body for each item of the shortest list and fails after
# that, as it does in Python.


def strict_zip(lowering: Lowering, node: ast.expr) -> ast.Call | None:
    """Return the `zip(…, strict=True)` that a loop iterates over, directly or inside of
    `enumerate`.
    """
    match node:
        case ast.Call(func=ast.Name(id="zip")) if lowering.is_builtin("zip"):
            return node if _strictness(node) and len(node.args) > 1 else None
        case ast.Call(func=ast.Name(id="enumerate"), args=[items, *_]) if lowering.is_builtin(
            "enumerate"
        ):
            return strict_zip(lowering, items)
        case _:
            return None


def without_check(node: ast.expr, strict: ast.Call) -> ast.expr:
    """Return the iterable of the same loop over a zip without `strict`."""
    if node is strict:
        return ast.copy_location(ast.Call(strict.func, strict.args, []), strict)
    assert isinstance(node, ast.Call)
    arguments = [without_check(node.args[0], strict), *node.args[1:]]
    return ast.copy_location(ast.Call(node.func, arguments, node.keywords), node)


def is_uneven(lowering: Lowering, strict: ast.Call) -> TypedQuery:
    """Return a test that is true when the lists have different lengths."""
    lists = [lowering.iterable(argument) for argument in strict.args]
    if any(is_refused(items.type) for items in lists):
        return REFUSED_EXPRESSION
    return TypedQuery(_uneven(tuple(items.query for items in lists)), BOOL, fails_of(*lists))
