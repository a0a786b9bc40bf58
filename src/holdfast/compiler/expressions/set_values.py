"""Sets as values: a JSON list without equal members, in the order in which they were added.

A member is found by its JSON, so only types whose values are equal exactly when their JSON is may
be members (`has_plain_equality`). The order of the list shows nowhere: a set is not gone through,
and two sets are compared without it. `add` only appends, so that the log stores the new member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from holdfast.compiler.context import TypedQuery, fails_of
from holdfast.compiler.expressions.gathering import where
from holdfast.compiler.expressions.query import (
    EMPTY_LIST,
    TRUE,
    ArrayOf,
    Binary,
    Conditional,
    Constant,
    Flat,
    FunctionLiteral,
    QueryTree,
    Variable,
    hold,
    invoke,
    items_of,
    mapped,
)
from holdfast.compiler.expressions.rules import CANNOT_FAIL, MethodResult, MethodRule
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    NEVER,
    NONE,
    UUID,
    DictOf,
    EnumOf,
    ListOf,
    ModelOf,
    SetOf,
    TupleOf,
    Type,
    element_of,
    is_list,
    is_numeric,
    is_text,
    join,
    join_all,
    may_be_list,
    members_of,
)

MEMBERS_HELP: Final = (
    "members of one type: texts, numbers, dates, members of one enum, tuples of them"
)
#: Returns the query for an operation on two sets. It may contain the query of each set several
#: times.
_OfTwo = Callable[[QueryTree, QueryTree, Type], QueryTree]


def has_plain_equality(element: Type) -> bool:
    """Return True when two members of a set of this type are equal exactly when their JSON is."""
    members = [member for member in members_of(element) if member not in (NONE, NEVER)]
    kinds = set(map(_kind, members))
    return None not in kinds and len(kinds) <= 1 and _have_plain_equality(members)


def _have_plain_equality(members: list[Type]) -> bool:
    """Return False for tuples of several types with items that are equal only in Python: `(True,)`
    and a `tuple[int, ...]`.
    """
    if not any(isinstance(member, ListOf) for member in members) or len(members) == 1:
        return True
    return has_plain_equality(join_all(element_of(member) or NEVER for member in members))


def _kind(member: Type) -> object:
    """Return the kind of a member type: values of different kinds are never equal in Python. None
    for a type whose equal values can differ in JSON.
    """
    match member:
        case EnumOf(cls):
            return cls
        case TupleOf(parts):
            return tuple if all(map(has_plain_equality, parts)) else None
        case ListOf(element, True):
            return tuple if has_plain_equality(element) else None
        case _ if is_numeric(member):
            return float
        case _ if is_text(member):
            return str
        case _:
            return member if member in (BOOL, UUID, DATE) else None


def is_scalar(type_: Type) -> bool:
    """Return True for what JSONata's `in` compares: never null, a list or an object."""
    return not may_be_list(type_) and not any(
        member == NONE or isinstance(member, DictOf | ModelOf) for member in members_of(type_)
    )


def is_any(wanted: QueryTree, items: QueryTree) -> QueryTree:
    """Return True when an item equals `wanted`, also where JSONata's `in` does not compare it."""
    is_equal = Binary("=", Variable("_item"), wanted)
    return Binary("in", TRUE, mapped(items, ("_item",), is_equal))


def has(items: QueryTree, member: QueryTree, element: Type) -> QueryTree:
    """Return `member in items`. The code reads the member again for each item, so it should be a
    variable.
    """
    return Binary("in", member, items) if is_scalar(element) else is_any(member, items)


def distinct(items: QueryTree, element: Type) -> QueryTree:
    """Return the items of a list without repetitions."""
    if isinstance(items, ArrayOf) and len(items.items) <= 1:
        return items
    if not may_be_list(element):
        return Flat(invoke("distinct", items))
    return _added(EMPTY_LIST, items, element)


def with_member(items: QueryTree, member: QueryTree, element: Type) -> QueryTree:
    """Return the set with the member added, or the same set if it has the member."""

    def build(held: QueryTree) -> QueryTree:
        longer = invoke("append", items, items_of(held, is_list=is_list(element)))
        return Conditional(has(items, held, element), items, longer)

    return hold(member, build, "_member")


def without_member(items: QueryTree, member: QueryTree, element: Type) -> QueryTree:
    return _where(items, Binary("!=", _ONE, member), element)


def _added(items: QueryTree, more: QueryTree, element: Type) -> QueryTree:
    done = Variable("_done")
    longer = invoke("append", done, items_of(_ONE, is_list=is_list(element)))
    step = Conditional(has(done, _ONE, element), done, longer)
    return invoke("reduce", more, FunctionLiteral((done.name, _ONE.name), step), items)


_ONE: Final = Variable("_one")


def _where(items: QueryTree, test: QueryTree, element: Type) -> QueryTree:
    """Return the members `$_one` for which the test is true."""
    return where(items, (_ONE,), test, element)


# Two sets.


def _union(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    if may_be_list(element):
        return _added(some, others, element)
    return distinct(invoke("append", some, others), element)


def _intersection(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return _where(some, has(others, _ONE, element), element)


def _difference(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return _where(some, invoke("not", has(others, _ONE, element)), element)


def _of_one_only(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    left, right = _difference(some, others, element), _difference(others, some, element)
    return _union(left, right, element)


def _is_empty(items: QueryTree) -> QueryTree:
    return Binary("=", invoke("count", items), Constant(0))


def _is_subset(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return _is_empty(_difference(some, others, element))


def _is_superset(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return _is_subset(others, some, element)


def _is_disjoint(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return _is_empty(_intersection(some, others, element))


def _sizes(symbol: str, some: QueryTree, others: QueryTree) -> QueryTree:
    return Binary(symbol, invoke("count", some), invoke("count", others))


def _is_equal(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return Binary("and", _sizes("=", some, others), _is_subset(some, others, element))


def _is_proper_subset(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return Binary("and", _sizes("<", some, others), _is_subset(some, others, element))


def _is_proper_superset(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return _is_proper_subset(others, some, element)


def _is_different(some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    return invoke("not", _is_equal(some, others, element))


#: The operators and methods whose result is a set.
MAKING: Final[Mapping[str, _OfTwo]] = MappingProxyType(
    {
        "|": _union,
        "&": _intersection,
        "-": _difference,
        "^": _of_one_only,
        "union": _union,
        "intersection": _intersection,
        "difference": _difference,
        "symmetric_difference": _of_one_only,
    }
)
#: The operators and methods that compare two sets.
COMPARING: Final[Mapping[str, _OfTwo]] = MappingProxyType(
    {
        "==": _is_equal,
        "!=": _is_different,
        "<=": _is_subset,
        "<": _is_proper_subset,
        ">=": _is_superset,
        ">": _is_proper_superset,
        "issubset": _is_subset,
        "issuperset": _is_superset,
        "isdisjoint": _is_disjoint,
    }
)


def combined_sets(symbol: str, left: TypedQuery, right: TypedQuery) -> TypedQuery | None:
    """Return `left | right` and the like; None where the operator or the members do not allow
    it.
    """
    assert isinstance(left.type, SetOf)
    assert isinstance(right.type, SetOf)
    element = join(left.type.element, right.type.element)
    if symbol not in MAKING or not has_plain_equality(element):
        return None
    query = of_two(MAKING[symbol], left.query, right.query, element)
    kept = element if MAKING[symbol] in (_union, _of_one_only) else left.type.element
    return TypedQuery(query, SetOf(kept, left.type.is_frozen), fails_of(left, right))


def compared_sets(symbol: str, left: TypedQuery, right: TypedQuery) -> TypedQuery | None:
    """Return `left == right` and the like; None where the operator or the members do not allow
    it.
    """
    assert isinstance(left.type, SetOf)
    assert isinstance(right.type, SetOf)
    element = join(left.type.element, right.type.element)
    if symbol not in COMPARING or not has_plain_equality(element):
        return None
    query = of_two(COMPARING[symbol], left.query, right.query, element)
    return TypedQuery(query, BOOL, fails_of(left, right))


# Methods.


def _method(name: str) -> MethodRule:
    def rule(
        value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]
    ) -> MethodResult | None:
        if len(arguments) != 1 or not isinstance(type_, SetOf):
            return None
        # A method such as `union` accepts any list as its argument, while the operators accept only
        # sets.
        other = arguments[0]
        member = other.type.element if isinstance(other.type, SetOf) else element_of(other.type)
        if member is None:
            return None
        operand = other._replace(type=SetOf(member))
        of = combined_sets if name in MAKING else compared_sets
        found = of(name, TypedQuery(value, type_), operand)
        return None if found is None else (found.query, found.type, CANNOT_FAIL)

    return rule


def _copied(
    value: QueryTree, type_: Type, arguments: tuple[TypedQuery, ...]
) -> MethodResult | None:
    return None if arguments else (value, type_, CANNOT_FAIL)


RULES: Final[Mapping[str, MethodRule]] = MappingProxyType(
    {
        "copy": _copied,
        **{name: _method(name) for name in (*MAKING, *COMPARING) if name.isalpha()},
    }
)


def of_two(rule: _OfTwo, some: QueryTree, others: QueryTree, element: Type) -> QueryTree:
    """Apply the rule to two sets. Each is assigned to a variable first, because the rule reads it
    several times.
    """
    return hold(
        some,
        lambda left: hold(others, lambda right: rule(left, right, element), "_others"),
        "_some",
    )
