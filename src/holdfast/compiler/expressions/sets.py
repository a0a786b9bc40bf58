"""How sets are made, and what goes through one without showing its order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery
from holdfast.compiler.expressions.comprehensions import lower_list_comprehension
from holdfast.compiler.expressions.displays import lower_list
from holdfast.compiler.expressions.query import EMPTY_LIST
from holdfast.compiler.expressions.set_values import (
    MEMBERS_HELP,
    distinct,
    has_plain_equality,
)
from holdfast.compiler.types.types import (
    NEVER,
    DictOf,
    ListOf,
    ModelOf,
    SetOf,
    TupleOf,
    Type,
    Union,
    describe,
    element_of,
    is_refused,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def lower_set(expressions: Expressions, node: ast.expr) -> TypedQuery:
    """Lower `{a, b}`, `{x for x in xs}`, `set()`, `set(xs)` and `frozenset(xs)`."""
    is_frozen = isinstance(node, ast.Call) and expressions.unit.text(node.func) == "frozenset"
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        return TypedQuery(EMPTY_LIST, SetOf(NEVER, is_frozen))
    found = members(expressions, node)
    if found is None:
        message, help_ = "a set is made of one list", "set(values)"
        return expressions.unit.refused(node, "HF008", message, help_)
    if is_refused(found.type):
        return REFUSED_EXPRESSION
    element = element_of(found.type) or NEVER
    if not has_plain_equality(element):
        message = f"a set of {describe(element)} has no exact JSONata form"
        return expressions.unit.refused(node, "HF002", message, MEMBERS_HELP)
    return TypedQuery(distinct(found.query, element), SetOf(element, is_frozen), found.fails)


def members(expressions: Expressions, node: ast.expr) -> TypedQuery | None:
    """Return the members of a set, perhaps with repetitions; None when `node` is not a set."""
    match node:
        case ast.Set(elts=items):
            return lower_list(expressions, items)
        case ast.SetComp():
            expressions.unit.unordered.update(_loops(node))
            return lower_list_comprehension(expressions, node)
        case ast.Call(func=ast.Name(id="set" | "frozenset" as name), args=[items], keywords=[]) if (
            expressions.is_builtin(name)
        ):
            return without_order(expressions, items)
        case _:
            return None


def without_order(expressions: Expressions, node: ast.expr) -> TypedQuery:
    """Return the items of `node` as a list. The caller must not depend on their order, because the
    order of a set is undefined.
    """
    _allow(expressions, node)
    return expressions.iterable(node)


def in_order(expressions: Expressions, node: ast.expr) -> TypedQuery:
    """Return the items of `node` as a list whose order matters. A set is refused."""
    expressions.unit.unordered.difference_update([node, *_loops(node)])
    return expressions.iterable(node)


def _allow(expressions: Expressions, node: ast.expr) -> None:
    """Let `node`, and the loops of a comprehension, go through sets."""
    expressions.unit.unordered.update([node, *_loops(node)])


def _loops(node: ast.expr) -> list[ast.expr]:
    """Return what the loops of a comprehension go through."""
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
        return [generator.iter for generator in node.generators]
    return []


def is_hashable(type_: Type) -> bool:
    """Return True when Python allows a value of the type in a set."""
    match type_:
        case ListOf() | SetOf(_, False) | DictOf() | ModelOf():
            return False
        case TupleOf(parts) | Union(parts):
            return all(map(is_hashable, parts))
        case _:
            return True
