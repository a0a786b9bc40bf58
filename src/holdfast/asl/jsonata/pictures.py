"""Pictures (formats of numbers and times), such as `#,##0;o` and `[Y0001]-[M01]-[D01]`: writing and
reading.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from jsonata import JException
from jsonata.datetimeutils import DateTimeUtils
from jsonata.functions import Functions

from holdfast.asl.jsonata import costs, values
from holdfast.asl.jsonata.evaluation import evaluator
from holdfast.asl.jsonata.instants import millis_of, with_date

# The times that a picture can write: from year 1 to year 9999.
_MILLIS_AD_1: Final = 62_135_596_800_000  # before 1970
_MILLIS_AD_10000: Final = 253_402_300_799_999
_COMPONENT: Final = re.compile(r"\[([^\[\]]*)\]")
# A width of a thousand characters or more, in any notation that Python reads. Such a width is
# refused.
_WIDE: Final = re.compile(r"\d{4}|[+_]")
_PART: Final = re.compile(r"(\[\[|\]\])|(\[[^\[\]]*\])|([.*+?^${}()|\\])|(.)", re.DOTALL)
_WORDS: Final = re.compile(r"\[\s*[A-Za-z][^,]*[NnWwAaIi]|\[\s*[FPzZ]")
#: A time may be divided among neighbouring components in many ways. After this many tries it is
#: refused.
_DIVISIONS_MAX: Final = 100_000


def now(picture: str | None, timezone: str | None) -> Any:
    return from_millis(evaluator().moment.now_ms, picture, timezone)


def from_millis(millis: float | None, picture: str | None, timezone: str | None) -> Any:
    if millis is None:
        return None
    if not 0 <= millis + _MILLIS_AD_1 <= _MILLIS_AD_1 + _MILLIS_AD_10000:
        raise values.JsonataError("D1001", f"Number out of range: {millis}")
    if picture is not None:
        picture = _picture_of_time(picture)
    return DateTimeUtils.format_datetime(int(millis), picture, timezone)


def to_millis(timestamp: str | None, picture: str | None) -> Any:
    if timestamp is None:
        return None
    if picture is not None:
        dated, whole = with_date(
            _short(timestamp, "a time"), _picture_of_time(picture), evaluator().moment.now_ms
        )
        try:
            return DateTimeUtils.parse_datetime(dated, _readable(dated, whole))
        except KeyError as unknown:
            raise JException("D3132", -1, *unknown.args) from None
    millis = millis_of(timestamp)
    if millis is None:
        raise JException("D3110", -1, timestamp)
    return millis


def _short(text: str, what: str) -> str:
    """Return the picture, or refuse a long one. The library takes quadratic time to read a picture,
    and to read a text with it.
    """
    if len(text) > values.PICTURE_CHARACTERS_MAX:
        raise values.budget_error(f"was given {what} that is too long")
    evaluator().charge(costs.picture_items(text))
    return text


def _picture_of_time(picture: str) -> str:
    """Refuse a picture with a large width: the library would write a text of any width."""
    for component in _COMPONENT.findall(picture):
        _, comma, width = component.rpartition(",")
        if comma and _WIDE.search(width) is not None:
            raise values.budget_error("was given a picture of a time that is too wide")
    return _short(picture, "a picture of a time")


def _readable(timestamp: str, picture: str) -> str:
    """Return the picture in the form that the library needs: it reads literal text as a regular
    expression.

    Raises JsonataError for a time that could be divided among the components in too many ways.
    """
    soft = frozenset(" ,-") if _WORDS.search(picture) else frozenset()
    parts: list[str] = []
    run = longest = 0
    for doubled, component, special, literal in _PART.findall(picture):
        parts.append(f"\\{doubled or special}" if doubled or special else component or literal)
        if component:
            run += 1
            longest = max(longest, run)
        elif not literal.isalnum() and literal not in soft:
            run = 0
    if math.comb(len(timestamp), max(longest - 1, 0)) > _DIVISIONS_MAX:
        raise values.budget_error("was given a time that its picture reads in too many ways")
    return "".join(parts)


def format_integer(value: float | None, picture: str | None) -> Any:
    if value is None:
        return None
    if picture is None:
        raise JException("T0410", -1, 2, "formatInteger")
    evaluator().charge(costs.words_items(int(value)))
    return Functions.format_integer(value, _short(picture, "a picture of a number"))


def parse_integer(text: str | None, picture: str | None) -> Any:
    if text is None:
        return None
    if picture is None:
        raise JException("T0410", -1, 2, "parseInteger")
    number = Functions.parse_integer(
        _short(text, "a number"), _short(picture, "a picture of a number")
    )
    return values.without_long_integers(number)
