"""Durations: seconds inside a workflow, ISO 8601 text where pydantic writes a `timedelta`."""

from __future__ import annotations

import ast
from datetime import timedelta
from typing import Final

from holdfast.compiler.context import TypedQuery, Unit
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    FieldOf,
    ObjectOf,
    QueryTree,
    Regex,
    Variable,
    failure,
    hold,
    invoke,
    is_kind,
    mapped,
)
from holdfast.compiler.types.iso import UNIT_SECONDS, iso_of
from holdfast.compiler.types.types import (
    DURATION,
    ELAPSED,
    FLOAT,
    INT,
    UNKNOWN,
    WRITTEN_DURATION,
    EnumOf,
    ListOf,
    Opaque,
    Type,
    describe,
    has_duration,
    has_error,
    join_all,
    members_of,
)

WHOLE_SECONDS: Final = "a duration of a workflow is whole seconds"
FRACTION: Final = f"ValueError: {WHOLE_SECONDS}"


def is_duration(type_: Type) -> bool:
    return all(member in (DURATION, WRITTEN_DURATION) for member in members_of(type_))


def in_seconds(value: TypedQuery) -> TypedQuery:
    """Return a duration as a number of whole seconds, and any other value unchanged."""
    if value.type == DURATION or not is_duration(value.type):
        return value
    is_text = value.type == WRITTEN_DURATION

    def build(held: QueryTree) -> QueryTree:
        if is_text:
            return _parsed(held)
        is_number = is_kind(held, "number")
        return Conditional(is_number, held, _parsed(held))

    query = hold(value.query, build, "_duration")
    return TypedQuery(query, DURATION, value.fails | {"ValueError"})


def with_fraction(value: TypedQuery) -> TypedQuery:
    """Return a written duration as seconds, which may have a fraction. A test, `is_whole`,
    follows.
    """
    query = hold(value.query, lambda text: _read(text, is_checked=False), "_duration")
    return TypedQuery(query, DURATION, value.fails)


def is_whole(seconds: QueryTree) -> QueryTree:
    return Binary("=", invoke("floor", seconds), seconds)


def _parsed(text: QueryTree) -> QueryTree:
    """Return the seconds of an ISO 8601 duration: `"-P1DT30S"` gives -86430."""
    return _read(text, is_checked=True)


def _read(text: QueryTree, *, is_checked: bool) -> QueryTree:
    part = FieldOf(Variable("_part"), "match")
    amount = invoke("number", invoke("substring", part, Constant(0), _before_last(part)))
    units = ObjectOf(tuple((unit, Constant(size)) for unit, size in UNIT_SECONDS.items()))
    size = invoke("lookup", units, invoke("substring", part, Constant(-1)))
    parts = invoke("match", text, _PARTS)
    total = invoke("sum", mapped(parts, ("_part",), Binary("*", amount, size)))

    def signed(held: QueryTree) -> QueryTree:
        is_negative = Binary("=", invoke("substring", text, Constant(0), Constant(1)), _MINUS)
        number = Conditional(is_negative, Binary("-", Constant(0), held), held)
        return Conditional(is_whole(held), number, failure(FRACTION)) if is_checked else number

    return hold(total, signed, "_total")


_PARTS: Final = Regex("[0-9.]+[YDHMS]")
_MINUS: Final = Constant("-")


def _before_last(text: QueryTree) -> QueryTree:
    return Binary("-", invoke("length", text), Constant(1))


def written(value: TypedQuery) -> TypedQuery:
    """Return a duration as the text that pydantic writes, and any other value unchanged."""
    if DURATION not in members_of(value.type):
        return value
    type_ = join_all(
        WRITTEN_DURATION if member == DURATION else member for member in members_of(value.type)
    )
    if isinstance(value.query, Constant) and isinstance(value.query.value, int):
        return TypedQuery(Constant(iso_of(timedelta(seconds=value.query.value))), type_)

    def build(held: QueryTree) -> QueryTree:
        if value.type == DURATION:
            return _iso(held)
        is_number = is_kind(held, "number")
        return Conditional(is_number, _iso(held), held)

    return TypedQuery(hold(value.query, build, "_duration"), type_, value.fails)


def _iso(seconds: QueryTree) -> QueryTree:
    """Return the ISO 8601 duration of seconds: -86430 gives `"-P1DT30S"`."""
    return hold(invoke("abs", seconds), lambda size: _signed(seconds, size), "_size")


def _signed(seconds: QueryTree, size: QueryTree) -> QueryTree:
    def joined(date: QueryTree, clock: QueryTree) -> QueryTree:
        nothing = Conditional(Binary("=", date, _EMPTY), Constant("T0S"), _EMPTY)
        time = Conditional(Binary("=", clock, _EMPTY), nothing, Binary("&", Constant("T"), clock))
        return Binary("&", Binary("&", sign, date), time)

    is_negative = Binary("<", seconds, Constant(0))
    sign = Conditional(is_negative, Constant("-P"), Constant("P"))
    date, clock = _amounts(size, "YD"), _amounts(size, "HMS")
    return hold(
        date, lambda held: hold(clock, lambda other: joined(held, other), "_clock"), "_date"
    )


def _amounts(size: QueryTree, units: str) -> QueryTree:
    found: QueryTree | None = None
    for unit in units:
        amount = _whole(_rest(size, unit), UNIT_SECONDS[unit])
        text = Binary("&", invoke("string", amount), Constant(unit))
        part = Conditional(Binary(">", amount, Constant(0)), text, _EMPTY)
        found = part if found is None else Binary("&", found, part)
    assert found is not None
    return found


def _rest(size: QueryTree, unit: str) -> QueryTree:
    """Return the number of this unit that remains after the next larger unit."""
    larger = {"D": "Y", "H": "D", "M": "H", "S": "M"}.get(unit)
    if larger is None:
        return size
    seconds = UNIT_SECONDS[larger]
    return Binary("-", size, Binary("*", _whole(size, seconds), Constant(seconds)))


def _whole(size: QueryTree, seconds: int) -> QueryTree:
    return invoke("floor", Binary("/", size, Constant(seconds)))


_EMPTY: Final = Constant("")


def at_border(unit: Unit, node: ast.expr, value: TypedQuery) -> TypedQuery:
    """Return a value that leaves the workflow, in the form that pydantic would write."""
    if has_error(value.type):
        return refuse_error(unit, node, value.type)
    if not has_duration(value.type):
        return value
    others = [member for member in members_of(value.type) if member != DURATION]
    is_told_apart = value.type == DURATION or not any(map(_may_be_number, others))
    if is_told_apart and not any(map(has_duration, others)):
        return written(value)
    return refuse_durations(unit, node, value.type)


def _may_be_number(type_: Type) -> bool:
    return type_ in (INT, FLOAT, UNKNOWN) or isinstance(type_, EnumOf | Opaque)


def refuse_error(unit: Unit, node: ast.expr, type_: Type) -> TypedQuery:
    help_ = f"str({unit.text(node)})" if isinstance(node, ast.Name) else "the text of it: str(err)"
    if isinstance(type_, ListOf):
        items = unit.text(node) if isinstance(node, ast.Name) else "outcomes"
        help_ = f"[one for one in {items} if not isinstance(one, Exception)]"
    return unit.refused(node, "HF040", "an exception is no JSON value", help_)


def refuse_durations(unit: Unit, node: ast.expr, type_: Type) -> TypedQuery:
    message = f"durations inside {describe(type_)} would leave the workflow as numbers"
    help_ = "return seconds: [wait.total_seconds() for wait in waits]"
    if type_ == ELAPSED:
        message = "the difference of two moments may have a fraction, and leaves as seconds"
        help_ = f"({unit.text(node)}).total_seconds()"
    return unit.refused(node, "HF052", message, help_)
