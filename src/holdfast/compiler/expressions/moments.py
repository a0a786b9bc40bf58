"""Dates, moments and times of day: sums with durations, differences, parts, and their order.

Both are text, as pydantic writes it: `2026-03-01` and `2026-03-01T09:00:00.250000+01:00`. The first
19 characters of a moment are its clock; a fraction of six digits and an offset may follow. Python
adds a duration to the clock and keeps fraction and offset, and so does the expression here.

The difference of two moments may have a fraction of a second, and a duration of a workflow has
none. So it has a type of its own, `ELAPSED`, which is only compared and read.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.durations import in_seconds, is_duration
from holdfast.compiler.expressions.query import (
    Binary,
    Conditional,
    Constant,
    QueryTree,
    failure,
    hold,
    invoke,
)
from holdfast.compiler.types.types import BOOL, DATE, DATETIME, DURATION, ELAPSED, INT, TIME, Type

Combined = tuple[QueryTree, Type, frozenset[str]]

_DAY_SECONDS: Final = 86_400
_DAY_MS: Final = 86_400_000
#: The milliseconds from 1970 to 0001-01-01 and to 10000-01-01. Every date of Python lies between
#: them.
_FIRST_MS: Final = -62_135_596_800_000
_END_MS: Final = 253_402_300_800_000
_DAYS_BEFORE_1970: Final = 719_162
_DATE_PICTURE: Final = Constant("[Y0001]-[M01]-[D01]")
_CLOCK_PICTURE: Final = Constant("[Y0001]-[M01]-[D01]T[H01]:[m01]:[s01]")
_CLOCK_SIZE: Final = 19
_TIME_START: Final = 11
_FRACTION_SIZE: Final = 7
OUT_OF_RANGE: Final = "date value out of range"
_OUT_OF_RANGE: Final = f"OverflowError: {OUT_OF_RANGE}"
MIXED: Final = "can't compare offset-naive and offset-aware datetimes"
MIXED_DIFFERENCE: Final = "can't subtract offset-naive and offset-aware datetimes"
MIXED_TIMES: Final = "can't compare offset-naive and offset-aware times"
_MIXED_DIFFERENCE: Final = f"TypeError: {MIXED_DIFFERENCE}"
_EXACT_SECONDS: Final = 2**33
#: For each part of the text of a time, the position of its first character and its length.
_PARTS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "year": (0, 4),
        "month": (5, 2),
        "day": (8, 2),
        "hour": (11, 2),
        "minute": (14, 2),
        "second": (17, 2),
    }
)
_PARTS_OF: Final[Mapping[Type, tuple[str, ...]]] = MappingProxyType(
    {
        DATE: ("year", "month", "day"),
        DATETIME: tuple(_PARTS),
        TIME: ("hour", "minute", "second"),
    }
)
#: The day that stands before a time of day, where two of them are compared.
_ANY_DAY: Final = "2000-01-01T"


def combined_moments(symbol: str, left: TypedQuery, right: TypedQuery) -> Combined | None:
    """Lower `day + duration`, `moment - duration` and `day - day`; None for other operands."""
    match (symbol, left.type, right.type):
        case ("+", type_, other) if type_ == DURATION and other in (DATE, DATETIME):
            return _moved("+", right, left.query)
        case ("+" | "-", type_, other) if type_ in (DATE, DATETIME) and other == DURATION:
            return _moved(symbol, left, right.query)
        case ("-", type_, other) if type_ == other == DATE:
            between = Binary("-", _millis(left.query), _millis(right.query))
            return Binary("/", between, Constant(1_000)), DURATION, frozenset()
        case ("-", type_, other) if type_ == other == DATETIME:
            return _elapsed(left.query, right.query), ELAPSED, frozenset({"TypeError"})
        case _:
            return None


def _elapsed(later: QueryTree, earlier: QueryTree) -> QueryTree:
    """Return the seconds from one moment to another, as `timedelta.total_seconds` rounds them."""

    def build(one: QueryTree, other: QueryTree) -> QueryTree:
        seconds = _divided(Binary("-", _clock_millis(one), _clock_millis(other)), 1_000)
        micros = Binary("-", _micros(one), _micros(other))
        found = hold(
            seconds,
            lambda whole: hold(micros, lambda rest: _with_fraction(whole, rest), "_micros"),
            "_seconds",
        )
        is_alike = Binary("=", has_offset(one), has_offset(other))
        return Conditional(is_alike, found, failure(_MIXED_DIFFERENCE))

    return hold(
        later,
        lambda one: hold(earlier, lambda other: build(one, other), "_other_moment"),
        "_moment",
    )


def _with_fraction(whole: QueryTree, micros: QueryTree) -> QueryTree:
    # Up to 2**33 seconds, 272 years, two numbers that follow each other are less than a microsecond
    # apart. A longer difference with a fraction is an error.
    is_exact = Binary("<", invoke("abs", whole), Constant(_EXACT_SECONDS))
    total = Binary("+", Binary("*", whole, Constant(1_000_000)), micros)
    exact = Conditional(is_exact, _divided(total, 1_000_000), failure(_OUT_OF_RANGE))
    return Conditional(Binary("=", micros, Constant(0)), whole, exact)


def _micros(text: QueryTree) -> QueryTree:
    digits = _part(text, _CLOCK_SIZE + 1, _FRACTION_SIZE - 1)
    return Conditional(_has_fraction(text), invoke("number", digits), Constant(0))


def _moved(symbol: str, start: TypedQuery, seconds: QueryTree) -> Combined:
    def build(text: QueryTree) -> QueryTree:
        # For a date Python ignores the part of the duration that is not a whole day, so use only
        # the whole days.
        if start.type == DATE:
            step = Binary("*", _whole_days(seconds), Constant(_DAY_MS))
            return _written(Binary(symbol, _millis(text), step), _DATE_PICTURE)
        clock = Binary("&", _part(text, 0, _CLOCK_SIZE), Constant("Z"))
        step = Binary("*", seconds, Constant(1_000))
        moved = _written(Binary(symbol, _millis(clock), step), _CLOCK_PICTURE)
        return Binary("&", moved, _part(text, _CLOCK_SIZE))

    return hold(start.query, build, "_start"), start.type, frozenset({"OverflowError"})


def moves_moment(operator: ast.operator, left: TypedQuery, right: TypedQuery) -> bool:
    """Return True for the sum of a date or a moment and a duration, which may have no date."""
    moments = (DATE, DATETIME)
    match operator:
        case ast.Add():
            return (left.type in moments and is_duration(right.type)) or (
                is_duration(left.type) and right.type in moments
            )
        case ast.Sub():
            return left.type in moments and is_duration(right.type)
        case _:
            return False


def are_moments(left: TypedQuery, right: TypedQuery) -> bool:
    """Return True for two moments, or two times of day, of which one may have no time zone."""
    return left.type == right.type and left.type in (DATETIME, TIME)


def mixed_text(type_: Type) -> str:
    """Return Python's error for the order of two such values, of which one has no time zone."""
    return MIXED if type_ == DATETIME else MIXED_TIMES


def moment_text(value: TypedQuery) -> QueryTree:
    """Return the text of the moment; that of a day with the time of day, for a time."""
    return Binary("&", Constant(_ANY_DAY), value.query) if value.type == TIME else value.query


def stays_in_range(symbol: str, left: TypedQuery, right: TypedQuery) -> QueryTree:
    """Return the test whether such a sum has a date."""
    start, move = (right, left) if is_duration(left.type) else (left, right)
    seconds = in_seconds(move).query
    if start.type == DATE:
        at, step = _millis(start.query), Binary("*", _whole_days(seconds), Constant(_DAY_MS))
    else:
        clock = Binary("&", _part(start.query, 0, _CLOCK_SIZE), Constant("Z"))
        at, step = _millis(clock), Binary("*", seconds, Constant(1_000))
    return hold(Binary(symbol, at, step), _is_known, "_millis")


def _is_known(millis: QueryTree) -> QueryTree:
    return Binary(
        "and", Binary(">=", millis, Constant(_FIRST_MS)), Binary("<", millis, Constant(_END_MS))
    )


def _written(millis: QueryTree, picture: QueryTree) -> QueryTree:
    def build(held: QueryTree) -> QueryTree:
        text = invoke("fromMillis", held, picture)
        return Conditional(_is_known(held), text, failure(_OUT_OF_RANGE))

    return hold(millis, build, "_millis")


def compared_moments(symbol: str, left: TypedQuery, right: TypedQuery) -> TypedQuery:
    """Lower `==`, `!=` and the orders of two moments, or of two times of day, to a comparison of
    sortable texts.
    """
    is_order = symbol not in ("=", "!=")
    error = failure(f"TypeError: {mixed_text(left.type)}")
    mixed: QueryTree = error if is_order else Constant(symbol == "!=")

    def build(one: QueryTree, other: QueryTree) -> QueryTree:
        is_alike = Binary("=", has_offset(one), has_offset(other))
        return Conditional(is_alike, Binary(symbol, sortable(one), sortable(other)), mixed)

    query = hold(
        moment_text(left),
        lambda one: hold(moment_text(right), lambda other: build(one, other), "_other_moment"),
        "_moment",
    )
    fails = left.fails | right.fails | ({"TypeError"} if is_order else set())
    return left._replace(query=query, type=BOOL, fails=frozenset(fails))


def has_offset(text: QueryTree) -> QueryTree:
    return Binary("!=", _part(text, _after_fraction(text)), Constant(""))


def sortable(text: QueryTree) -> QueryTree:
    """Return the seconds since 0001 in UTC, in 12 digits, and the fraction."""
    # Count from one day earlier. The offset of a time on 0001-01-01 may lead to the day before it,
    # and the number must not be negative, because its text is compared.
    since = Binary("-", _clock_millis(text), Constant(_FIRST_MS - _DAY_MS))
    seconds = invoke("string", invoke("floor", _divided(since, 1_000)))
    digits = invoke("pad", seconds, Constant(-12), Constant("0"))
    fraction = Conditional(
        _has_fraction(text), _part(text, _CLOCK_SIZE, _FRACTION_SIZE), Constant("")
    )
    return Binary("&", digits, fraction)


def _clock_millis(text: QueryTree) -> QueryTree:
    """Return the milliseconds since 1970 of a moment without its fraction."""
    offset = _part(text, _after_fraction(text))
    zone = Conditional(Binary("=", offset, Constant("")), Constant("Z"), offset)
    return _millis(Binary("&", _part(text, 0, _CLOCK_SIZE), zone))


def _has_fraction(text: QueryTree) -> QueryTree:
    return Binary("=", _part(text, _CLOCK_SIZE, 1), Constant("."))


def _after_fraction(text: QueryTree) -> QueryTree:
    return Conditional(
        _has_fraction(text), Constant(_CLOCK_SIZE + _FRACTION_SIZE), Constant(_CLOCK_SIZE)
    )


def part_of(base: TypedQuery, name: str) -> TypedQuery | None:
    """Lower `day.year`, `moment.hour`, `duration.days` and such; None for other attributes."""
    if base.type == ELAPSED and name == "days":
        return TypedQuery(_whole_days(base.query), INT, base.fails)
    if is_duration(base.type) and name in ("days", "seconds"):
        held = in_seconds(base)
        days = _whole_days(held.query)
        if name == "days":
            return TypedQuery(days, INT, held.fails)
        query = hold(
            held.query,
            lambda all_: Binary("-", all_, Binary("*", _whole_days(all_), Constant(_DAY_SECONDS))),
            "_seconds",
        )
        return TypedQuery(query, INT, held.fails)
    if name not in _PARTS_OF.get(base.type, ()):
        return None
    start, size = _PARTS[name]
    first = start - _TIME_START if base.type == TIME else start
    return TypedQuery(invoke("number", _part(base.query, first, size)), INT, base.fails)


def iso_text(text: QueryTree, separator: str) -> QueryTree:
    """Return the text of `moment.isoformat(separator)`. It writes UTC as an offset, where pydantic
    writes "Z".
    """

    def build(held: QueryTree) -> QueryTree:
        clock = _part(held, _TIME_START, _CLOCK_SIZE - _TIME_START)
        rest = invoke("replace", _part(held, _CLOCK_SIZE), Constant("Z"), Constant("+00:00"))
        front = Binary("&", date_of(held), Constant(separator))
        return Binary("&", Binary("&", front, clock), rest)

    return hold(text, build, "_moment")


def date_of(text: QueryTree) -> QueryTree:
    """Return the date of a moment, by its own clock."""
    return _part(text, 0, 10)


def time_of(text: QueryTree) -> QueryTree:
    """Return the time of day of a moment, by its own clock and without its offset."""

    def build(held: QueryTree) -> QueryTree:
        size = Binary("-", _after_fraction(held), Constant(_TIME_START))
        return invoke("substring", held, Constant(_TIME_START), size)

    return hold(text, build, "_moment")


def weekday_of(text: QueryTree) -> QueryTree:
    """Return 0 for a Monday: 0001-01-01 was one."""
    days = Binary("+", _divided(_millis(date_of(text)), _DAY_MS), Constant(_DAYS_BEFORE_1970))
    return hold(
        days,
        lambda held: Binary(
            "-", held, Binary("*", Constant(7), invoke("floor", _divided(held, 7)))
        ),
        "_days",
    )


def _whole_days(seconds: QueryTree) -> QueryTree:
    return invoke("floor", _divided(seconds, _DAY_SECONDS))


def _divided(number: QueryTree, by: int) -> QueryTree:
    return Binary("/", number, Constant(by))


def _millis(text: QueryTree) -> QueryTree:
    return invoke("toMillis", text)


def _part(text: QueryTree, start: int | QueryTree, size: int | None = None) -> QueryTree:
    first = Constant(start) if isinstance(start, int) else start
    given = (first,) if size is None else (first, Constant(size))
    return invoke("substring", text, *given)
