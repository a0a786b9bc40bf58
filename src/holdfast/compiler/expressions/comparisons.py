"""Comparisons: the pairs of types that JSONata compares as Python does."""

from __future__ import annotations

import ast
from types import MappingProxyType
from typing import Any, Final

from holdfast.compiler.context import REFUSED_EXPRESSION, TypedQuery, Unit, fails_of
from holdfast.compiler.expressions.dict_keys import key_help, sought
from holdfast.compiler.expressions.durations import in_seconds
from holdfast.compiler.expressions.moments import are_moments, compared_moments
from holdfast.compiler.expressions.operators import SYMBOLS, as_number
from holdfast.compiler.expressions.query import (
    Binary,
    Constant,
    QueryTree,
    hold,
    invoke,
)
from holdfast.compiler.expressions.set_values import compared_sets, is_any, is_scalar
from holdfast.compiler.expressions.unknowns import beside, in_any, ordered
from holdfast.compiler.types.models import fields_of, has_plain_equality
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    ELAPSED,
    FLOAT,
    INT,
    NEVER,
    NONE,
    STR,
    UNKNOWN,
    UUID,
    WRITTEN_DURATION,
    DictOf,
    EnumOf,
    ErrorOf,
    ListOf,
    ModelOf,
    Opaque,
    SetOf,
    TextForm,
    TextOf,
    TupleOf,
    Type,
    as_text,
    describe,
    element_of,
    is_numeric,
    is_refused,
    is_text,
    join_keys,
    may_be_none,
    members_of,
)

#: The operators that compare in an order, and `==` and `!=`.
_SYMBOLS: Final = MappingProxyType({**SYMBOLS, ast.Eq: "==", ast.NotEq: "!="})


def compare(
    unit: Unit, node: ast.expr, operator: ast.cmpop, left: TypedQuery, right: TypedQuery
) -> TypedQuery:
    if is_refused(left.type, right.type):
        return REFUSED_EXPRESSION
    if left.type != right.type:
        left, right = in_seconds(left), in_seconds(right)
    if not isinstance(operator, ast.In | ast.NotIn | ast.Is | ast.IsNot):
        left, right = _as_numbers(operator, left, right)
    fails = fails_of(left, right)
    if isinstance(left.type, SetOf) and isinstance(right.type, SetOf):
        found = compared_sets(_SYMBOLS.get(type(operator), ""), left, right)
        if found is not None:
            return found
    match operator:
        case ast.Eq() | ast.NotEq():
            return _equality(unit, node, operator, left, right)
        case ast.Is() | ast.IsNot() if _is_member_of(left.type, right.type):
            return TypedQuery(
                _equal(left.query, right.query, isinstance(operator, ast.IsNot)), BOOL, fails
            )
        case ast.Is() | ast.IsNot() if isinstance(right.query, Constant):
            if right.query.value is not None and not isinstance(right.query.value, bool):
                return _identity(unit, node)
            is_negative = isinstance(operator, ast.IsNot)
            return TypedQuery(_equal(left.query, right.query, is_negative), BOOL, fails)
        case ast.Is() | ast.IsNot():
            return _identity(unit, node)
        case ast.In() | ast.NotIn():
            found = _membership(unit, node, left, right)
            is_negative = isinstance(operator, ast.NotIn)
            query = invoke("not", found.query) if is_negative else found.query
            return TypedQuery(query, found.type, fails | found.fails)
        case _:
            return _order(unit, node, SYMBOLS[type(operator)], left, right)


def _as_numbers(
    operator: ast.cmpop, left: TypedQuery, right: TypedQuery
) -> tuple[TypedQuery, TypedQuery]:
    """Return bools as numbers where Python uses them as numbers: in an order, and beside a number.
    JSONata would fail there.
    """
    left, right = beside(operator, left, right.type), beside(operator, right, left.type)
    numbers = as_number(left), as_number(right)
    is_equality = isinstance(operator, ast.Eq | ast.NotEq)
    if is_equality and left.type == right.type:
        return left, right
    return numbers if all(is_numeric(one.type) for one in numbers) else (left, right)


def _is_member_of(left: Type, right: Type) -> bool:
    """Return True when both are members of one enum. Equal members are the same object."""
    return isinstance(right, EnumOf) and all(one in (right, NONE) for one in members_of(left))


def _identity(unit: Unit, node: ast.expr) -> TypedQuery:
    return unit.refused(
        node, "HF048", "`is` compares objects; values have no identity", "compare with `==`"
    )


def _equal(left: QueryTree, right: QueryTree, is_negative: bool) -> QueryTree:
    return Binary("!=" if is_negative else "=", left, right)


def _equality(
    unit: Unit, node: ast.expr, operator: ast.cmpop, left: TypedQuery, right: TypedQuery
) -> TypedQuery:
    if are_moments(left, right):
        return compared_moments("!=" if isinstance(operator, ast.NotEq) else "=", left, right)
    if not are_comparable(left.type, right.type):
        return _refused_equality(unit, node, left.type, right.type)
    is_negative = isinstance(operator, ast.NotEq)
    query = _equal(left.query, right.query, is_negative)
    return TypedQuery(query, BOOL, fails_of(left, right))


def _refused_equality(unit: Unit, node: ast.expr, left: Type, right: Type) -> TypedQuery:
    message = f"whether {describe(left)} equals {describe(right)} differs between Python and JSON"
    help_ = "compare values of one known type; annotate the type where it is unknown"
    parts = (*members_of(left), *members_of(right))
    if isinstance(node, ast.Compare) and SetOf in (type(left), type(right)):
        help_ = _set_help(unit, node, left) or help_
    is_one_model = isinstance(left, ModelOf) and left == right
    if is_one_model or any(isinstance(part, TextForm) for part in parts):
        help_ = _date_help(unit, node, left, right) or "compare them inside a @pure function"
    elif isinstance(left, EnumOf) != isinstance(right, EnumOf):
        help_ = _member_help(left if isinstance(left, EnumOf) else right)
    return unit.refused(node, "HF048", message, help_)


def _date_help(unit: Unit, node: ast.expr, left: Type, right: Type) -> str | None:
    if not isinstance(node, ast.Compare) or len(node.ops) > 1 or {left, right} != {DATE, DATETIME}:
        return None
    one, other = unit.text(node.left), unit.text(node.comparators[0])
    operator = unit.text(node).removeprefix(one).removesuffix(other).strip()
    if left == DATETIME:
        return f"{one}.date() {operator} {other}"
    return f"{one} {operator} {other}.date()"


def _set_help(unit: Unit, node: ast.Compare, left: Type) -> str | None:
    if len(node.ops) > 1:
        return None
    one, other = unit.text(node.left), unit.text(node.comparators[0])
    return f"{one} == set({other})" if isinstance(left, SetOf) else f"set({one}) == {other}"


def _member_help(enum: Type) -> str:
    assert isinstance(enum, EnumOf)
    members = [f"{enum.enum.__name__}.{member.name}" for member in enum.enum]
    return f"x == {members[0]}" if members else "x.value == …"


def are_comparable(left: Type, right: Type, inside: frozenset[Any] = frozenset()) -> bool:
    """Return True when `==` on the JSON of two values gives the same answer as `==` on the values.

    The answers differ for True and 1, for two models or enums with the same JSON, and for a tuple
    and a list. A value of unknown type can be compared safely only with text and None. `inside` are
    the models around the fields that are being compared.
    """
    return all(
        _are_comparable(some, other, inside)
        for some in members_of(left)
        for other in members_of(right)
    )


#: The types whose equal values have equal texts, so that JSONata may compare the texts. Equal
#: Decimals may have different texts ("1.0", "1.00"), and so may equal times in two zones.
_CANONICAL: Final = (UUID, DATE, WRITTEN_DURATION)
_PLAIN: Final = (BOOL, INT, FLOAT, STR)
_DURATIONS: Final = (DURATION, ELAPSED)


def _are_comparable(left: Type, right: Type, inside: frozenset[Any]) -> bool:
    left, right = _mixed_in(left), _mixed_in(right)
    if NEVER in (left, right) or NONE in (left, right):
        return True
    if Opaque in (type(left), type(right)) or ErrorOf in (type(left), type(right)):
        return False
    if UNKNOWN in (left, right):
        return STR in (left, right)
    if SetOf in (type(left), type(right)):
        # `compare` compares two sets, because their order does not matter.
        return False
    if TextForm in (type(left), type(right)):
        return left == right and left in _CANONICAL
    if left in _DURATIONS or right in _DURATIONS:
        # Their JSON is a number, and in Python no duration equals a number.
        return left in _DURATIONS and right in _DURATIONS
    match (left, right):
        case (ListOf(some, is_tuple), ListOf(other, also)):
            return is_tuple == also and are_comparable(some, other, inside)
        case (DictOf(some, key=key), DictOf(other, key=also)):
            return join_keys(key, also) is not None and are_comparable(some, other, inside)
        case (TupleOf(some), TupleOf(other)):
            pairs = zip(some, other, strict=False)
            return len(some) == len(other) and all(
                are_comparable(one, another, inside) for one, another in pairs
            )
        case (ModelOf(model), ModelOf()):
            return left == right and (model in inside or _by_fields(model, inside | {model}))
        case (EnumOf(), EnumOf()):
            return left == right
        case (ListOf() | TupleOf(), ListOf() | TupleOf()):
            return False
        case (ModelOf() | DictOf(), ModelOf() | DictOf()):
            return False
        case (EnumOf(), _) | (_, EnumOf()):
            return left not in _PLAIN and right not in _PLAIN
        case _:
            return (left == BOOL) == (right == BOOL) or STR in (left, right)


def _by_fields(model: Any, inside: frozenset[Any]) -> bool:
    """Return True when two values of the model are equal exactly if all fields of their JSON
    are.
    """
    return has_plain_equality(model) and all(
        are_comparable(field.type, field.type, inside) for field in fields_of(model).values()
    )


def _mixed_in(type_: Type) -> Type:
    """Return the type that a `StrEnum` is compared as: text."""
    match type_:
        case TextOf():
            return STR
        case EnumOf(cls) if issubclass(cls, str):
            return STR
        case EnumOf(cls) if issubclass(cls, int):
            return INT
        case _:
            return type_


def _order(
    unit: Unit, node: ast.expr, symbol: str, left: TypedQuery, right: TypedQuery
) -> TypedQuery:
    left, right = in_seconds(left), in_seconds(right)
    if are_moments(left, right):
        return compared_moments(symbol, left, right)
    if left.type == right.type == UNKNOWN:
        return ordered(symbol, left, right)
    pairs = (_mixed_in(left.type), _mixed_in(right.type))
    has_order = (
        all(map(is_numeric, pairs))
        or all(map(is_text, pairs))
        or left.type == right.type in (DURATION, DATE, UUID)
        or {left.type, right.type} <= {DURATION, ELAPSED}
    )
    if not has_order:
        pairs = (left.type, right.type)
        pair = f"{describe(left.type)} and {describe(right.type)}"
        message = f"`{symbol}` between {pair} has no order"
        help_ = _order_help(unit, node, left.type, right.type)
        if any(isinstance(type_, TextForm) for type_ in pairs):
            message = f"{message} that their JSON keeps"
            help_ = _date_help(unit, node, *pairs) or "compare them inside a @pure function"
        return unit.refused(node, "HF049", message, help_)
    return TypedQuery(Binary(symbol, left.query, right.query), BOOL, fails_of(left, right))


def _order_help(unit: Unit, node: ast.expr, left: Type, right: Type) -> str:
    """Return code for the author that tests a value for None before the comparison, if the other
    type is known.
    """
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for operand, type_ in ((node.left, left), (node.comparators[0], right)):
            if may_be_none(type_):
                return f"if {unit.text(operand)} is not None: …"
    return "compare two numbers or two texts"


def _membership(unit: Unit, node: ast.expr, item: TypedQuery, of: TypedQuery) -> TypedQuery:
    key = sought(of.type, item) if isinstance(of.type, DictOf) else None
    if key is not None:
        return TypedQuery(invoke("exists", invoke("lookup", of.query, key)), BOOL)
    if is_text(as_text(of.type)) and is_text(as_text(item.type)):
        return TypedQuery(invoke("contains", of.query, item.query), BOOL)
    if of.type == UNKNOWN and is_text(item.type):
        return in_any(item, of)
    element = of.type.element if isinstance(of.type, SetOf) else element_of(of.type)
    if isinstance(of.type, DictOf):
        return _refused_key(unit, node, item.type, of.type)
    if element is None:
        return unit.refused(
            node,
            "HF040",
            f"`in` on {describe(of.type)} has no exact JSONata form",
            "use it on a list, a set, a dict, or a text",
        )
    if not are_comparable(item.type, element):
        return _refused_equality(unit, node, item.type, element)
    if all(is_scalar(type_) for type_ in (item.type, element)):
        return TypedQuery(Binary("in", item.query, of.query), BOOL)
    # JSONata's `in` finds only texts, numbers and bools, so the compiled code compares the items
    # one by one.
    return TypedQuery(hold(item.query, lambda held: is_any(held, of.query), "_wanted"), BOOL)


def _refused_key(unit: Unit, node: ast.expr, key: Type, of: DictOf) -> TypedQuery:
    message, help_ = f"the keys of {describe(of)} are not {describe(key)}", "key in counts"
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        symbol = "not in" if isinstance(node.ops[0], ast.NotIn) else "in"
        text = key_help(of, key, unit.text(node.left))
        help_ = f"{text} {symbol} {unit.text(node.comparators[0])}"
    return unit.refused(node, "HF040", message, help_)
