"""Checks of single values: texts, numbers, timestamps, lists of choices; in both query
languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Any, Final

from holdfast.asl import error_names
from holdfast.asl.validation.jsonata import check_template, check_text
from holdfast.asl.validation.report import FieldCheck, RuleScope, expected, listed
from holdfast.limits import STATE_SECONDS_MAX

_EMPTY: Final = "Value cannot be empty"
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
    r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)\Z"
)


def anything(_scope: RuleScope, _value: Any, _location: str) -> None:
    """Accept any JSON."""


def text(scope: RuleScope, value: Any, location: str) -> None:
    if not isinstance(value, str):
        expected(scope, location, "STRING")


def boolean(scope: RuleScope, value: Any, location: str) -> None:
    if not isinstance(value, bool):
        expected(scope, location, "BOOLEAN")


def flag_or_jsonata(scope: RuleScope, value: Any, location: str) -> None:
    """Check a Choice rule's Condition: true, false, or an expression."""
    if isinstance(value, str):
        jsonata_text(scope, value, location)
    else:
        boolean(scope, value, location)


def jsonata_text(scope: RuleScope, value: str, location: str) -> None:
    """Check a text that must be an expression."""
    if value.startswith("{%") and value.endswith("%}"):
        check_text(scope, value, location)
    else:
        scope.refuse(location, "JSONata string must start with {% and end with %}")


def text_or_jsonata(scope: RuleScope, value: Any, location: str) -> None:
    """Check a text, which in a JSONata state may be an expression."""
    if not isinstance(value, str):
        expected(scope, location, "STRING")
    elif scope.is_jsonata:
        check_text(scope, value, location)


def template(scope: RuleScope, value: Any, location: str) -> None:
    """Check a field that only JSONata states have: any JSON with expressions in it."""
    check_template(scope, value, location)


def one_of(*choices: str) -> FieldCheck:
    def check(scope: RuleScope, value: Any, location: str) -> None:
        if not isinstance(value, str):
            expected(scope, location, "STRING")
        elif value not in choices:
            scope.refuse(location, f"Value should be one of the following: {listed(choices)}")

    return check


def integer(
    least: int, most: int | None = STATE_SECONDS_MAX, *, jsonata: bool = False
) -> FieldCheck:
    """Return a check for a whole number. With `jsonata` a JSONata state may have an expression
    instead.
    """

    def check(scope: RuleScope, value: Any, location: str) -> None:
        if isinstance(value, str) and jsonata and scope.is_jsonata:
            return jsonata_text(scope, value, location)
        if not isinstance(value, int) or isinstance(value, bool):
            return scope.refuse(location, "Expected value of type Integer")
        return _check_range(scope, value, (least, most), location)

    return check


def number(least: float, most: float | None = None, *, jsonata: bool = False) -> FieldCheck:
    def check(scope: RuleScope, value: Any, location: str) -> None:
        if isinstance(value, str) and jsonata and scope.is_jsonata:
            return jsonata_text(scope, value, location)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return expected(scope, location, "NUMBER")
        return _check_range(scope, value, (least, most), location)

    return check


def _check_range(
    scope: RuleScope, value: float, bounds: tuple[float, float | None], location: str
) -> None:
    least, most = bounds
    if not value >= least:
        scope.refuse(location, f"Minimum value is {least}")
    if most is not None and not value <= most:
        scope.refuse(location, f"Maximum value is {most}")


def timestamp(scope: RuleScope, value: Any, location: str) -> None:
    if not isinstance(value, str):
        return expected(scope, location, "STRING")
    if scope.is_jsonata and value.startswith("{%"):
        return check_text(scope, value, location)
    if not is_timestamp(value):
        scope.refuse(location, "String does not match RFC3339 timestamp")
    return None


def is_timestamp(value: str) -> bool:
    """Return True for RFC 3339 with an upper-case T and a Z or an offset. The day must exist."""
    found = _TIMESTAMP.match(value)
    if found is None:
        return False
    year, month, day = map(int, found.groups()[:3])
    try:
        date(max(year, 1), month, day)
    except ValueError:
        return False
    return True


def list_of(check_item: FieldCheck, *, may_be_empty: bool = False) -> FieldCheck:
    def check(scope: RuleScope, value: Any, location: str) -> None:
        if not isinstance(value, list):
            return expected(scope, location, "ARRAY")
        if not value and not may_be_empty:
            scope.refuse(location, _EMPTY)
        for number_, item in enumerate(value):
            check_item(scope, item, f"{location}[{number_}]")
        return None

    return check


def names_of_errors(scope: RuleScope, value: Any, location: str) -> None:
    """Check ErrorEquals. The check of the whole list says that States.ALL must be alone and
    last.
    """
    list_of(text)(scope, value, location)


def check_catch_alls(scope: RuleScope, handlers: Iterable[Any], location: str) -> None:
    """Check that States.ALL is the only error of the last retrier or catcher."""
    found = list(handlers)
    for number_, handler in enumerate(found):
        errors = handler.get("ErrorEquals") if isinstance(handler, dict) else None
        if not isinstance(errors, list) or error_names.ALL not in errors:
            continue
        if len(errors) > 1 or number_ < len(found) - 1:
            place = f"{location}[{number_}]/ErrorEquals[{errors.index('States.ALL')}]"
            scope.refuse(place, "States.ALL must appear alone and at end of list")
