"""`str(x)` and f-strings: only where Python and JSONata write the same characters."""

from __future__ import annotations

import ast
from typing import Final

from holdfast.dsl.context import REFUSED_EXPRESSION, Expression, Lowering, Unit, fails_of
from holdfast.dsl.query import (
    NULL,
    Binary,
    Call,
    Conditional,
    Constant,
    Query,
    cause_of,
    hold,
)
from holdfast.dsl.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    REFUSED,
    STR,
    ErrorOf,
    TextOf,
    Type,
    describe,
    is_refused,
    is_text,
    is_text_enum,
    may_be_none,
    without_none,
)

_PURE_HELP: Final = "write the text in a @pure function and use what it returns"


def text_of(unit: Unit, node: ast.expr, value: Expression) -> Expression:
    """What `str()` gives."""
    if is_refused(value.type):
        return REFUSED_EXPRESSION
    if value.type == ErrorOf(has_text=False):
        return unit.refused(
            node,
            "HF034",
            "the text of an error that an expression raised differs between Python and JSONata",
            "use a text of your own, or catch the errors of tasks by their classes",
        )
    query = _text(value.query, value.type)
    if query is None:
        kind = "a float" if value.type == FLOAT else describe(value.type)
        example = " (0.1+0.2, 1.0)" if value.type == FLOAT else ""
        message = f"text of {kind} differs between Python and JSONata{example}"
        return unit.refused(node, "HF051", message, _PURE_HELP)
    return Expression(query, STR, value.fails)


def _text(query: Query, type_: Type) -> Query | None:
    if may_be_none(type_):
        if _text(query, without_none(type_)) is None:
            return None
        return hold(query, lambda held: _text_or_none(held, without_none(type_)))
    if is_text(type_) or is_text_enum(type_):
        return query
    match type_:
        case ErrorOf():
            return cause_of(query)
        case _ if type_ == INT:
            return Call("string", (query,))
        case _ if type_ == BOOL:
            return Conditional(query, Constant("True"), Constant("False"))
        case _ if type_ == NONE:
            return Constant("None")
        case _:
            return None


def _text_or_none(held: Query, type_: Type) -> Query:
    inner = _text(held, type_)
    assert inner is not None
    return Conditional(Binary("=", held, NULL), Constant("None"), inner)


def lower_joined(lowering: Lowering, node: ast.JoinedStr) -> Expression:
    """An f-string."""
    parts = [_part(lowering, node, part) for part in node.values]
    if any(part.type == REFUSED for part in parts):
        return REFUSED_EXPRESSION
    if not parts:
        return Expression(Constant(""), TextOf(("",)))
    query = parts[0].query
    for part in parts[1:]:
        query = Binary("&", query, part.query)
    return Expression(query, STR, fails_of(*parts))


def _part(lowering: Lowering, whole: ast.JoinedStr, part: ast.expr) -> Expression:
    unit = lowering.unit
    match part:
        case ast.Constant(value=str(text)):
            return Expression(Constant(text), STR)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            # Before Python 3.12 the parts of an f-string have no positions of their own.
            return text_of(unit, whole, lowering.lower(value))
        case _:
            return unit.refused(
                whole, "HF051", "formats and conversions have no JSONata form", _PURE_HELP
            )
