"""`str(x)` and f-strings, where Python and JSONata write the same characters."""

from __future__ import annotations

import ast
import re
from typing import Final

from holdfast.compiler.context import REFUSED_EXPRESSION, Lowering, TypedQuery, Unit, fails_of
from holdfast.compiler.expressions.enum_values import text_of_member
from holdfast.compiler.expressions.format_specs import aligned, format_query
from holdfast.compiler.expressions.library_texts import format_step, repr_step, text_step
from holdfast.compiler.expressions.moments import iso_text
from holdfast.compiler.expressions.query import (
    NULL,
    Binary,
    Conditional,
    Constant,
    QueryTree,
    hold,
    invoke,
    message_of,
)
from holdfast.compiler.expressions.rounding import digits
from holdfast.compiler.library_calls import constant
from holdfast.compiler.types.types import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    INT,
    NONE,
    PATH,
    REFUSED,
    SECRET,
    STR,
    UUID,
    EnumOf,
    ErrorOf,
    TextOf,
    Type,
    describe,
    is_numeric,
    is_refused,
    is_text,
    is_text_enum,
    may_be_none,
    members_of,
    without_none,
)

_PURE_HELP: Final = "write the text in a @pure function"
OPEN_IN_TASK: Final = "open it in the task that needs it: def call(token: SecretStr) -> …: …"


def text_of(unit: Unit, node: ast.expr, value: TypedQuery) -> TypedQuery:
    """Return the query for `str(value)`."""
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    if isinstance(value.type, ErrorOf) and not value.type.has_text:
        place = value.type.nameless
        found = f": here that of {place}" if place else ""
        return unit.refused(
            node,
            "HF034",
            "the text of an error that an expression raised differs between Python and JSONata"
            f"{found}",
            "use a text of your own, or catch the errors of tasks by their classes",
        )
    query = _text(value.query, value.type)
    if query is None:
        kind = "a float" if is_numeric(value.type) else describe(value.type)
        example = " (0.1+0.2, 1.0)" if is_numeric(value.type) else ""
        message = f"text of {kind} differs between Python and JSONata{example}"
        help_ = OPEN_IN_TASK if SECRET in members_of(value.type) else _PURE_HELP
        if is_numeric(value.type):
            help_ = 'f"{float(x)}", or a format: f"{x:.2f}"'
        return unit.refused(node, "HF051", message, help_)
    return TypedQuery(query, STR, value.fails)


#: For these types Python's `str()` gives the same text as pydantic's JSON.
_WRITTEN_AS_TEXT: Final = (UUID, DATE, DECIMAL, PATH)


def _text(query: QueryTree, type_: Type) -> QueryTree | None:
    if may_be_none(type_):
        if _text(query, without_none(type_)) is None:
            return None
        return hold(query, lambda held: _text_or_none(held, without_none(type_)))
    if is_text(type_) or is_text_enum(type_):
        return query
    match type_:
        case EnumOf(cls):
            return text_of_member(query, cls)
        case ErrorOf(coded=coded):
            return message_of(query, coded)
        case _ if type_ in _WRITTEN_AS_TEXT:
            return query
        case _ if type_ == DATETIME:
            return iso_text(query, " ")
        case _ if type_ == INT:
            return invoke("string", query)
        case _ if type_ == BOOL:
            return Conditional(query, Constant("True"), Constant("False"))
        case _ if type_ == NONE:
            return Constant("None")
        case _:
            return None


def _text_or_none(held: QueryTree, type_: Type) -> QueryTree:
    inner = _text(held, type_)
    assert inner is not None
    return Conditional(Binary("=", held, NULL), Constant("None"), inner)


def lower_joined(lowering: Lowering, node: ast.JoinedStr) -> TypedQuery:
    """Lower an f-string."""
    parts = [_part(lowering, node, part) for part in node.values]
    if any(part.type == REFUSED for part in parts):
        return REFUSED_EXPRESSION
    if not parts:
        return TypedQuery(Constant(""), TextOf(("",)))
    query = parts[0].query
    for part in parts[1:]:
        query = Binary("&", query, part.query)
    return TypedQuery(query, STR, fails_of(*parts))


def _part(lowering: Lowering, whole: ast.JoinedStr, part: ast.expr) -> TypedQuery:
    unit = lowering.unit
    if part in lowering.hoisted:
        return lowering.hoisted[part]
    match part:
        case ast.Constant(value=str(text)):
            return TypedQuery(Constant(text), STR)
        case ast.FormattedValue(value=value, conversion=-1 | 115, format_spec=None):
            # A refusal points to the whole f-string, because its parts have no positions of their
            # own before Python 3.12.
            found = lowering.lower(value)
            return text_step(lowering, part, value, found) or text_of(unit, whole, found)
        case ast.FormattedValue(value=value, conversion=114, format_spec=None):
            found = lowering.lower(value)
            if _has_plain_repr(found.type):
                return text_of(unit, whole, found)
            step = repr_step(lowering, part, value, found)
            return step or unit.refused(whole, "HF051", "`!r` has no JSONata form", _PURE_HELP)
        case ast.FormattedValue(
            value=value,
            conversion=-1,
            format_spec=ast.JoinedStr(values=[ast.Constant(value=str(spec))]),
        ):
            in_units = _in_units(lowering, value, spec)
            return in_units or formatted(lowering, whole, part, lowering.lower(value), spec)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=ast.JoinedStr() as given):
            step = format_step(lowering, part, lowering.lower(value), (value, given))
            if step is not None:
                return step
    return unit.refused(whole, "HF051", "this computed format has no JSONata form", _PURE_HELP)


def _has_plain_repr(type_: Type) -> bool:
    """Return True when `repr` of a value is the text that `str` gives."""
    return is_refused(type_) or all(member in (INT, BOOL, NONE) for member in members_of(type_))


_UNITS_SPEC: Final = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>]))?(?P<width>[1-9][0-9]{0,3})?(?P<comma>,)?"
    r"\.(?P<places>[1-6])f"
)


def _in_units(lowering: Lowering, node: ast.expr, spec: str) -> TypedQuery | None:
    """Lower `f"{cents / 100:.2f}"`, with as many places as the divisor has zeros; None for other
    forms.

    The quotient of an int of 15 digits is so near to the decimal fraction that rounding gives the
    digits of the int. No other rounding of a float is the same in JSONata.
    """
    found = _UNITS_SPEC.fullmatch(spec)
    match node:
        case ast.BinOp(left, ast.Div(), ast.Constant(value=int(scale))) if (
            found is not None and scale == 10 ** int(found["places"])
        ):
            amount = lowering.lower(left)
            if is_refused(amount.type):
                return REFUSED_EXPRESSION
            if amount.type != INT:
                return None
            text = hold(amount.query, lambda held: _units(held, scale, found), "_amount")
            return TypedQuery(aligned(text, found, ">"), STR, amount.fails)
        case _:
            return None


def _units(amount: QueryTree, scale: int, spec: re.Match[str]) -> QueryTree:
    def build(size: QueryTree) -> QueryTree:
        whole = invoke("floor", Binary("/", size, Constant(scale)))
        rest = Binary("-", size, Binary("*", whole, Constant(scale)))
        last = invoke("pad", invoke("string", rest), Constant(-int(spec["places"])), Constant("0"))
        sign = Conditional(Binary("<", amount, Constant(0)), Constant("-"), Constant(""))
        front = Binary("&", sign, digits(whole, has_commas=bool(spec["comma"])))
        return Binary("&", Binary("&", front, Constant(".")), last)

    return hold(invoke("abs", amount), build, "_size")


def formatted(
    lowering: Lowering, whole: ast.expr, part: ast.FormattedValue, value: TypedQuery, spec: str
) -> TypedQuery:
    """Return the query for `format(value, spec)`."""
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    query = format_query(value, spec)
    if query is not None:
        return TypedQuery(query, STR, value.fails)
    given = (part.value, constant(part, spec))
    step = format_step(lowering, part, value, given)
    if step is not None:
        return step
    message = f"the format `{spec}` of {describe(value.type)} has no exact JSONata form"
    return lowering.unit.refused(whole, "HF051", message, _PURE_HELP)
