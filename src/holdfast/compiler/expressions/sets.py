"""Sets where the order of their members does not matter: in `in`, `len`, `sorted`, `sum`, `min`,
`max` and `any`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery
from holdfast.compiler.expressions.comprehensions import lower_list_comprehension
from holdfast.compiler.expressions.displays import lower_list
from holdfast.compiler.expressions.query import Flat, FunctionCall
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    NEVER,
    UUID,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    TupleOf,
    Type,
    Union,
    describe,
    element_of,
    is_numeric,
    is_refused,
    is_text,
)

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions

HELP: Final = "sorted(set(values)), len(set(values)), or `in` a set"


def members(expressions: Expressions, node: ast.expr) -> TypedQuery | None:
    """Return the members of a set, perhaps with repetitions; None when `node` is no set."""
    match node:
        case ast.Set(elts=items):
            return lower_list(expressions, items)
        case ast.SetComp():
            return lower_list_comprehension(expressions, node)
        case ast.Call(func=ast.Name(id="set" | "frozenset" as name), args=[items], keywords=[]) if (
            expressions.is_builtin(name)
        ):
            return expressions.iterable(items)
        case _:
            return None


def without_order(expressions: Expressions, node: ast.expr) -> TypedQuery:
    """Return the items of an iteration over `node` as a list, for a use that ignores their
    order.
    """
    found = members(expressions, node)
    if found is None:
        return expressions.iterable(node)
    if is_refused(found.type):
        return REFUSED_EXPRESSION
    element = element_of(found.type) or NEVER
    if not _is_plain(element):
        message = f"a set of {describe(element)} has no exact JSONata form"
        return expressions.unit.refused(node, "HF002", message, HELP)
    return TypedQuery(Flat(FunctionCall("distinct", (found.query,))), ListOf(element), found.fails)


def is_hashable(type_: Type) -> bool:
    """Return True when Python allows a value of the type in a set."""
    match type_:
        case ListOf() | DictOf() | ModelOf():
            return False
        case TupleOf(parts) | Union(parts):
            return all(map(is_hashable, parts))
        case _:
            return True


def _is_plain(element: Type) -> bool:
    """Return True when two members are equal exactly if their JSON is."""
    if is_numeric(element) or is_text(element) or isinstance(element, EnumOf):
        return True
    return element in (BOOL, UUID, DATE)
