"""Operators, comparisons and truth: which pairs of types have an exact JSONata form."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from holdfast.dsl.context import REFUSED_EXPRESSION, Expression, Unit, fails_of
from holdfast.dsl.query import (
    FALSE,
    NULL,
    TRUE,
    Binary,
    Block,
    Call,
    Conditional,
    Constant,
    Flat,
    Function,
    Negative,
    Query,
    Variable,
    failure,
    hold,
)
from holdfast.dsl.types import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    NEVER,
    NONE,
    REFUSED,
    STR,
    UNKNOWN,
    DictOf,
    EnumOf,
    ErrorOf,
    ListOf,
    ModelOf,
    Opaque,
    TextOf,
    TupleOf,
    Type,
    Union,
    describe,
    element_of,
    is_numeric,
    is_refused,
    is_text,
    join,
    may_be_list,
    may_be_none,
    members_of,
    without_none,
)

SYMBOLS: Final[Mapping[type[ast.AST], str]] = MappingProxyType(
    {
        ast.Add: "+",
        ast.Sub: "-",
        ast.Mult: "*",
        ast.Div: "/",
        ast.FloorDiv: "//",
        ast.Mod: "%",
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
    }
)
_NO_FORM: Final[Mapping[type[ast.AST], str]] = MappingProxyType(
    {
        ast.Pow: "**",
        ast.MatMult: "@",
        ast.BitAnd: "&",
        ast.BitOr: "|",
        ast.BitXor: "^",
        ast.LShift: "<<",
        ast.RShift: ">>",
    }
)
_PURE_HELP: Final = "call it inside a @pure function"


# Arithmetic.


def arithmetic(
    unit: Unit, node: ast.AST, operator: ast.operator, left: Expression, right: Expression
) -> Expression:
    """`left operator right`; `node` is where a refusal points."""
    if is_refused(left.type, right.type):
        return REFUSED_EXPRESSION
    symbol = SYMBOLS.get(type(operator))
    if symbol is None:
        message = f"the operator `{_NO_FORM[type(operator)]}` has no exact JSONata form"
        return unit.refused(node, "HF002", message, _PURE_HELP)
    if UNKNOWN in (left.type, right.type):
        return _unknown_operand(unit, node, symbol)
    found = _combine(symbol, left, right)
    if found is None:
        pair = f"{describe(left.type)} and {describe(right.type)}"
        return unit.refused(
            node, "HF040", f"`{symbol}` between {pair} has no exact JSONata form", _PURE_HELP
        )
    query, type_, fails = found
    return Expression(query, type_, fails | fails_of(left, right))


def _unknown_operand(unit: Unit, node: ast.AST, symbol: str) -> Expression:
    return unit.refused(
        node,
        "HF046",
        f"`{symbol}` on a value of unknown type: a sum, a text or a list?",
        "annotate the type, e.g. `total: int = …`, or the field or result that it comes from",
    )


_Combined = tuple[Query, Type, frozenset[str]]
_CANNOT_FAIL: Final[frozenset[str]] = frozenset()


def _combine(symbol: str, left: Expression, right: Expression) -> _Combined | None:
    a, b = left.query, right.query
    both_numbers = is_numeric(left.type) and is_numeric(right.type)
    if symbol == "+" and is_text(left.type) and is_text(right.type):
        return Binary("&", a, b), STR, _CANNOT_FAIL
    if symbol == "+" and isinstance(left.type, ListOf) and isinstance(right.type, ListOf):
        return Call("append", (a, b)), join(left.type, right.type), _CANNOT_FAIL
    if symbol in ("+", "-", "*") and both_numbers:
        return Binary(symbol, a, b), _number(left.type, right.type), _CANNOT_FAIL
    if symbol in ("+", "-") and left.type == right.type == DURATION:
        return Binary(symbol, a, b), DURATION, _CANNOT_FAIL
    if symbol == "*" and {left.type, right.type} == {DURATION, INT}:
        return Binary(symbol, a, b), DURATION, _CANNOT_FAIL
    if symbol == "/" and both_numbers:
        return _divide(a, b, FLOAT, lambda x, y: Binary("/", x, y))
    if symbol in ("//", "%") and both_numbers and _number(left.type, right.type) == INT:
        return _divide(a, b, INT, _floor if symbol == "//" else _modulo)
    return None


def _number(left: Type, right: Type) -> Type:
    return FLOAT if FLOAT in (*members_of(left), *members_of(right)) else INT


def _floor(a: Query, b: Query) -> Query:
    return Call("floor", (Binary("/", a, b),))


def _modulo(a: Query, b: Query) -> Query:
    """JSONata's `%` takes the sign of the dividend, Python's that of the divisor."""
    return hold(a, lambda held: Binary("-", held, Binary("*", b, _floor(held, b))), "_dividend")


def _divide(a: Query, b: Query, type_: Type, build: Callable[[Query, Query], Query]) -> _Combined:
    if isinstance(b, Constant) and b.value:
        return build(a, b), type_, _CANNOT_FAIL
    query = hold(
        b,
        lambda held: Conditional(
            Binary("=", held, Constant(0)), failure("ZeroDivisionError"), build(a, held)
        ),
        "_divisor",
    )
    return query, type_, frozenset({"ZeroDivisionError"})


def negate(unit: Unit, node: ast.UnaryOp, operand: Expression) -> Expression:
    if is_refused(operand.type):
        return REFUSED_EXPRESSION
    if not is_numeric(operand.type):
        message = f"`-` of {describe(operand.type)} has no JSONata form"
        return unit.refused(node, "HF040", message, _PURE_HELP)
    if isinstance(operand.query, Constant) and isinstance(operand.query.value, int | float):
        return Expression(Constant(-operand.query.value), operand.type)
    return Expression(Negative(operand.query), operand.type, operand.fails)


# Truth.


def truth(unit: Unit, node: ast.expr, value: Expression) -> Expression:
    """Whether Python takes the value for true."""
    query = _truth(value.query, value.type)
    if query is None:
        return unit.refused(
            node,
            "HF041",
            f"the truth of a value of {_kind(value.type)} type is ambiguous",
            "compare explicitly: `is not None`, `== …`, `len(…) > 0`; or annotate the type",
        )
    if value.fails and isinstance(query, Constant):
        # Always true, once it has a value; finding the value may fail.
        query = Block("_v", value.query, query)
    return Expression(query, BOOL, value.fails)


def _kind(type_: Type) -> str:
    return "unknown" if type_ == UNKNOWN else describe(type_)


def _truth(query: Query, type_: Type) -> Query | None:
    if may_be_none(type_):
        return _truth_of_optional(query, type_)
    if is_numeric(type_):
        return Binary("!=", query, Constant(0))
    if is_text(type_):
        return Binary("!=", query, Constant(""))
    match type_:
        case Union():
            return None
        case ListOf():
            return Binary(">", Call("count", (query,)), Constant(0))
        case DictOf():
            return Binary(">", Call("count", (Call("keys", (query,)),)), Constant(0))
        case EnumOf(cls) if not issubclass(cls, str | int):
            return TRUE
        case ModelOf(model) if not hasattr(model, "__bool__") and not hasattr(model, "__len__"):
            return TRUE
        case _ if type_ in (BOOL, REFUSED):
            return query
        case _ if type_ == NONE:
            return FALSE
        case _:
            return None


def _truth_of_optional(query: Query, type_: Type) -> Query | None:
    if _truth(NULL, without_none(type_)) is None:
        return None

    def build(held: Query) -> Query:
        inner = _truth(held, without_none(type_))
        assert inner is not None
        is_present = Binary("!=", held, NULL)
        return is_present if inner == TRUE else Conditional(is_present, inner, FALSE)

    return hold(query, build)


# Comparison.


def compare(
    unit: Unit, node: ast.expr, operator: ast.cmpop, left: Expression, right: Expression
) -> Expression:
    if is_refused(left.type, right.type):
        return REFUSED_EXPRESSION
    fails = fails_of(left, right)
    match operator:
        case ast.Eq() | ast.NotEq():
            return _equality(unit, node, operator, left, right)
        case ast.Is() | ast.IsNot() if isinstance(right.query, Constant):
            if right.query.value is not None and not isinstance(right.query.value, bool):
                return _identity(unit, node)
            is_negative = isinstance(operator, ast.IsNot)
            return Expression(_equal(left.query, right.query, is_negative), BOOL, fails)
        case ast.Is() | ast.IsNot():
            return _identity(unit, node)
        case ast.In() | ast.NotIn():
            found = _membership(unit, node, left, right)
            is_negative = isinstance(operator, ast.NotIn)
            query = Call("not", (found.query,)) if is_negative else found.query
            return Expression(query, found.type, fails)
        case _:
            return _order(unit, node, SYMBOLS[type(operator)], left, right)


def _identity(unit: Unit, node: ast.expr) -> Expression:
    return unit.refused(
        node, "HF048", "`is` compares objects; values have no identity", "compare with `==`"
    )


def _equal(left: Query, right: Query, is_negative: bool) -> Query:
    return Binary("!=" if is_negative else "=", left, right)


def _equality(
    unit: Unit, node: ast.expr, operator: ast.cmpop, left: Expression, right: Expression
) -> Expression:
    if not are_comparable(left.type, right.type):
        return _refused_equality(unit, node, left.type, right.type)
    is_negative = isinstance(operator, ast.NotEq)
    query = _equal(left.query, right.query, is_negative)
    return Expression(query, BOOL, fails_of(left, right))


def _refused_equality(unit: Unit, node: ast.expr, left: Type, right: Type) -> Expression:
    return unit.refused(
        node,
        "HF048",
        f"whether {describe(left)} equals {describe(right)} differs between Python and JSON",
        "compare values of one known type; annotate the type where it is unknown",
    )


def are_comparable(left: Type, right: Type) -> bool:
    """Whether `==` on the JSON of two values answers what `==` on the values does.

    It does not for True and 1, for two models or enums with the same JSON, and for a tuple and a
    list; of a value of unknown type only text and None can be told apart from everything else.
    """
    return all(
        _are_comparable(some, other) for some in members_of(left) for other in members_of(right)
    )


_PLAIN: Final = (BOOL, INT, FLOAT, STR, DURATION)


def _are_comparable(left: Type, right: Type) -> bool:
    left, right = _mixed_in(left), _mixed_in(right)
    if NEVER in (left, right) or NONE in (left, right):
        return True
    if Opaque in (type(left), type(right)) or ErrorOf in (type(left), type(right)):
        return False
    if UNKNOWN in (left, right):
        return STR in (left, right)
    match (left, right):
        case (ListOf(some), ListOf(other)) | (DictOf(some), DictOf(other)):
            return are_comparable(some, other)
        case (TupleOf(some), TupleOf(other)):
            return len(some) == len(other) and all(map(are_comparable, some, other))
        case (ModelOf(), ModelOf()) | (EnumOf(), EnumOf()):
            return left == right
        case (ListOf() | TupleOf(), ListOf() | TupleOf()):
            return False
        case (ModelOf() | DictOf(), ModelOf() | DictOf()):
            return False
        case (EnumOf(), _) | (_, EnumOf()):
            return left not in _PLAIN and right not in _PLAIN
        case _:
            return (left == BOOL) == (right == BOOL) or STR in (left, right)


def _mixed_in(type_: Type) -> Type:
    """A `StrEnum` compares as the text that it is."""
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
    unit: Unit, node: ast.expr, symbol: str, left: Expression, right: Expression
) -> Expression:
    pairs = (left.type, right.type)
    has_order = (
        all(map(is_numeric, pairs))
        or all(map(is_text, pairs))
        or left.type == right.type == DURATION
    )
    if not has_order:
        return unit.refused(
            node,
            "HF049",
            f"`{symbol}` between {describe(left.type)} and {describe(right.type)} has no order",
            "compare two numbers or two texts; test for None first",
        )
    return Expression(Binary(symbol, left.query, right.query), BOOL, fails_of(left, right))


def _membership(unit: Unit, node: ast.expr, item: Expression, of: Expression) -> Expression:
    if isinstance(of.type, DictOf) and is_text(item.type):
        return Expression(Call("exists", (Call("lookup", (of.query, item.query)),)), BOOL)
    if is_text(of.type) and is_text(item.type):
        return Expression(Call("contains", (of.query, item.query)), BOOL)
    element = element_of(of.type)
    if element is None:
        return unit.refused(
            node,
            "HF040",
            f"`in` on {describe(of.type)} has no exact JSONata form",
            "use it on a list, a dict with text keys, or a text",
        )
    if not are_comparable(item.type, element):
        return _refused_equality(unit, node, item.type, element)
    if all(_is_scalar(type_) for type_ in (item.type, element)):
        return Expression(Binary("in", item.query, of.query), BOOL)
    # JSONata's `in` looks at scalars only, and not at null.
    return Expression(hold(item.query, lambda held: _is_any(held, of.query), "_wanted"), BOOL)


def _is_any(wanted: Query, items: Query) -> Query:
    is_equal = Function(("_item",), Binary("=", Variable("_item"), wanted))
    return Binary("in", TRUE, Flat(Call("map", (items, is_equal))))


def _is_scalar(type_: Type) -> bool:
    return not may_be_list(type_) and not any(
        member == NONE or isinstance(member, DictOf | ModelOf) for member in members_of(type_)
    )
