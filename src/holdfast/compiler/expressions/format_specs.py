"""`format(value, spec)` for constant specs: `f"{n:05d}"`, `f"{name:>10}"`, `f"{x:,.2f}"`."""

from __future__ import annotations

import re
from typing import Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    QueryTree,
    hold,
    invoke,
)
from holdfast.compiler.expressions.rounding import PLACES_MAX, digits, rounded_text
from holdfast.compiler.types.types import INT, is_numeric, is_text, is_text_enum

_SPEC: Final = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>^]))?(?P<sign>[-+ ])?(?P<zero>0)?(?P<width>[1-9][0-9]{0,3})?"
    r"(?P<comma>,)?(?:\.(?P<places>[0-9]{1,3}))?(?P<kind>[dsf%])?"
)
#: The decimal places that Python writes when the spec does not say how many.
_PLACES: Final = 6


def format_query(value: TypedQuery, spec: str) -> QueryTree | None:
    """Return the query for `format(value, spec)`; None when it has no exact form."""
    found = _SPEC.fullmatch(spec)
    if found is None:
        return None
    if found["zero"] and (found["align"] or found["comma"] or not found["width"]):
        return None
    if is_text(value.type) or is_text_enum(value.type):
        return _text_format(value.query, found)
    if not is_numeric(value.type):
        return None
    if found["kind"] in ("f", "%"):
        return _float_format(value.query, found)
    if value.type == INT and found["kind"] in ("d", None) and found["places"] is None:
        return _int_format(value.query, found)
    return None


def _text_format(text: QueryTree, spec: re.Match[str]) -> QueryTree | None:
    if spec["kind"] not in ("s", None) or spec["zero"] or spec["comma"] or spec["sign"]:
        return None
    if spec["places"] is not None:
        size = Constant(int(spec["places"]))
        text = invoke("substring", text, Constant(0), size)
    return aligned(text, spec, "<")


def _int_format(number: QueryTree, spec: re.Match[str]) -> QueryTree:
    if not spec["zero"] and spec["sign"] in ("-", None):
        return aligned(digits(number, has_commas=bool(spec["comma"])), spec, ">")

    def build(held: QueryTree) -> QueryTree:
        size = digits(invoke("abs", held), has_commas=bool(spec["comma"]))
        return _signed(held, size, spec)

    return hold(number, build, "_number")


def _float_format(number: QueryTree, spec: re.Match[str]) -> QueryTree | None:
    places = _PLACES if spec["places"] is None else int(spec["places"])
    if places > PLACES_MAX:
        return None
    if spec["kind"] == "%":
        number = Binary("*", number, Constant(100))

    def build(held: QueryTree) -> QueryTree:
        size = rounded_text(held, places, has_commas=bool(spec["comma"]))
        return _signed(held, size, spec)

    return hold(number, build, "_number")


def _signed(number: QueryTree, size: QueryTree, spec: re.Match[str]) -> QueryTree:
    """Return the text of a number with its sign. Leading zeros go between the sign and the
    digits.
    """
    plus = spec["sign"] if spec["sign"] in ("+", " ") else ""
    is_negative = Binary("<", number, Constant(0))
    if spec["kind"] == "%":
        size = Binary("&", size, Constant("%"))
    if spec["zero"]:
        width = int(spec["width"])
        room: QueryTree = Constant(1 - width)
        if not plus:
            room = Conditional(is_negative, room, Constant(-width))
        size = invoke("pad", size, room, Constant("0"))
    text = Binary("&", Conditional(is_negative, Constant("-"), Constant(plus)), size)
    return text if spec["zero"] else aligned(text, spec, ">")


def aligned(text: QueryTree, spec: re.Match[str], default: str) -> QueryTree:
    if not spec["width"]:
        return text
    width, fill = int(spec["width"]), Constant(spec["fill"] or " ")
    side = spec["align"] or default
    if side == "^":
        return hold(text, lambda held: _centred(held, width, fill), "_text")
    return invoke("pad", text, Constant(width if side == "<" else -width), fill)


def _centred(text: QueryTree, width: int, fill: QueryTree) -> QueryTree:
    """Return the text in the middle. Where the room is odd, Python puts one more on the right."""
    size = invoke("length", text)
    half = Binary("/", Binary("-", Constant(width), size), Constant(2))
    end = Binary("+", size, invoke("floor", half))
    padded = invoke("pad", text, Binary("-", Constant(0), end), fill)
    return invoke("pad", padded, Constant(width), fill)
