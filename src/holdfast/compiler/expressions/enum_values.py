"""The class of an enum in an expression: `Colour(text)`, `Colour[name]`, `for colour in Colour`."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING, Any

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery
from holdfast.compiler.expressions.query import (
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    QueryTree,
    failure,
    guard,
    hold,
    invoke,
    literal,
)
from holdfast.compiler.expressions.unknowns import key_of_any
from holdfast.compiler.library_calls import note_failure
from holdfast.compiler.types.annotations import from_annotation
from holdfast.compiler.types.types import INT, UNKNOWN, EnumOf, ListOf, is_refused, is_text

if TYPE_CHECKING:
    from holdfast.compiler.expressions.expressions import Expressions


def _enum_class(lowering: Lowering, node: ast.expr) -> type[Enum] | None:
    """Return the enum that a name from outside refers to, if a workflow can read its members."""
    if not isinstance(node, ast.Name | ast.Attribute) or not lowering.is_outside(node):
        return None
    found = lowering.unit.outside(node)
    if not isinstance(found, type) or not issubclass(found, Enum):
        return None
    is_plain = isinstance(from_annotation(found), EnumOf) and type(found).__iter__ is _ITERATES
    return found if is_plain else None


_ITERATES = type(Enum).__iter__


def members_in(lowering: Lowering, node: ast.expr) -> TypedQuery | None:
    """Return the members of an enum as a list, if `node` is the class."""
    found = _enum_class(lowering, node)
    if found is None:
        return None
    return TypedQuery(literal([member.value for member in found]), ListOf(EnumOf(found)))


def lower_member(expressions: Expressions, node: ast.Call) -> TypedQuery | None:
    """Lower `Colour(text)`, which fails for a text that no member has."""
    cls = _enum_class(expressions, node.func)
    if cls is None or len(node.args) != 1 or node.keywords or _has_own_search(cls):
        return None
    value = expressions.lower(node.args[0])
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    if value.type == EnumOf(cls):
        return value
    kinds = {type(member.value) for member in cls}
    if value.type == UNKNOWN and kinds in ({str}, {int}):
        # A bool is the number that Python compares it as.
        value = value._replace(query=key_of_any(value.query))
    elif not (is_text(value.type) and kinds == {str}) and not (
        value.type == INT and kinds == {int}
    ):
        return None
    if not is_refused(value.type) and value.type != UNKNOWN:
        note_failure(expressions, node, "ValueError")
    known = ArrayOf(tuple(Constant(member.value) for member in cls))
    wrong = failure(f"ValueError: no valid {cls.__name__}")
    query = hold(
        value.query,
        lambda held: Conditional(Binary("in", held, known), held, wrong),
        "_value",
    )
    return TypedQuery(query, EnumOf(cls), value.fails | {"ValueError"})


def _has_own_search(cls: type[Enum]) -> bool:
    """Return True when the author's code decides which member a value is."""
    return _is_of_author(cls._missing_)


def _is_of_author(method: Any) -> bool:
    """Return True for a method that neither `enum` nor a builtin class has defined."""
    return getattr(method, "__module__", None) not in (None, "enum")


def member_by_name(lowering: Lowering, node: ast.Subscript) -> TypedQuery | None:
    """Lower `Colour[name]`."""
    cls = _enum_class(lowering, node.value)
    if cls is None:
        return None
    name = lowering.lower(node.slice)
    if not is_text(name.type):
        return None
    table = literal({key: member.value for key, member in cls.__members__.items()})
    found = invoke("lookup", table, name.query)
    query = guard(found, f"KeyError: {lowering.unit.text(node)}")
    return TypedQuery(query, EnumOf(cls), name.fails | {"KeyError"})


def text_of_member(held: QueryTree, cls: type[Enum]) -> QueryTree | None:
    """Return the text of a member, as the Python that compiles writes it."""
    members = list(cls)
    if not members or _is_of_author(cls.__str__) or _is_of_author(cls.__format__):
        return None

    def chosen(value: QueryTree) -> QueryTree:
        *others, last = members
        found: QueryTree = Constant(str(last))
        for member in reversed(others):
            is_it = Binary("=", value, Constant(member.value))
            found = Conditional(is_it, Constant(str(member)), found)
        return found

    return hold(held, chosen, "_member")
