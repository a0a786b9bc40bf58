"""Built-in functions for text, as closures call them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from holdfast.asl.jsonata import costs
from holdfast.asl.jsonata.runtime import EvaluationRun, Many, Native, as_array, is_number, require
from holdfast.asl.jsonata.texts import (
    HASHES,
    TextMatch,
    TextPattern,
    after,
    before,
    hashed,
    padded,
    replaced,
    shown_match,
    split_at,
    trimmed,
    with_references,
)
from holdfast.asl.jsonata.values import STRING_CHARACTERS_MAX, UNDEFINED, checked_text


def _of_text(function: Callable[[str], Any]) -> Callable[..., Any]:
    def of_text(_: EvaluationRun, argument: Any) -> Any:
        if argument is UNDEFINED:
            return UNDEFINED
        require(type(argument) is str)
        return function(argument)

    return of_text


def _substring(_: EvaluationRun, string: Any, start: Any, length: Any = sys.maxsize) -> Any:
    require(type(start) is int, type(length) is int)
    if string is UNDEFINED:
        return UNDEFINED
    require(type(string) is str)
    first = max(start + len(string), 0) if start < 0 else start
    return string[first : first + length] if length > 0 else ""


def _substring_before(run: EvaluationRun, string: Any, part: Any) -> Any:
    require(type(part) is str)
    if string is UNDEFINED:
        return UNDEFINED
    require(type(string) is str)
    run.charge(costs.searching_items(string, part))
    return before(string, part)


def _substring_after(run: EvaluationRun, string: Any, part: Any) -> Any:
    require(type(part) is str)
    if string is UNDEFINED:
        return UNDEFINED
    require(type(string) is str)
    run.charge(costs.searching_items(string, part))
    return after(string, part)


def _found(run: EvaluationRun, pattern: Any, text: str) -> Iterator[TextMatch]:
    require(isinstance(pattern, TextPattern))
    for match in pattern.matches(text, run):
        # jsonata-python raises the error D1004 here: the pattern matches an empty text.
        require(match.text != "")
        yield match


def _contains(run: EvaluationRun, string: Any, part: Any) -> Any:
    require(type(part) is str or isinstance(part, TextPattern))
    if string is UNDEFINED:
        return UNDEFINED
    require(type(string) is str)
    if type(part) is str:
        run.charge(costs.searching_items(string, part))
        return part in string
    return next(_found(run, part, string), None) is not None


def _match(run: EvaluationRun, string: Any, pattern: Any) -> Any:
    require(isinstance(pattern, TextPattern))
    if string is UNDEFINED:
        return UNDEFINED
    require(type(string) is str)
    found = list(map(shown_match, _found(run, pattern, string)))
    run.charge(len(found))
    return Many(found)


def _split(run: EvaluationRun, string: Any, separator: Any) -> Any:
    require(separator != "", type(separator) is str or isinstance(separator, TextPattern))
    if string is UNDEFINED:
        return UNDEFINED
    require(type(string) is str)
    if type(separator) is str:
        run.charge(costs.searching_items(string, separator))
        parts = string.split(separator)
    else:
        parts = split_at(string, _found(run, separator, string))
    run.charge(len(parts))
    return parts


def _replace(run: EvaluationRun, string: Any, part: Any, replacement: Any) -> Any:
    require(
        part != "", type(part) is str or isinstance(part, TextPattern), type(replacement) is str
    )
    if string is UNDEFINED:
        return UNDEFINED
    require(type(string) is str)
    if type(part) is not str:
        found = _found(run, part, string)

        def made(match: TextMatch) -> str:
            run.charge(len(replacement))
            return with_references(replacement, match)

        return replaced(string, found, made)
    require(len(string) * max(len(replacement), 1) <= STRING_CHARACTERS_MAX)
    run.charge(costs.searching_items(string, part))
    return string.replace(part, replacement)


def _join(_: EvaluationRun, strings: Any, separator: Any = "") -> Any:
    parts = as_array(strings)
    require(type(separator) is str)
    if parts is None:
        return UNDEFINED
    require(all(type(part) is str for part in parts))
    require(sum(map(len, parts)) + len(separator) * len(parts) <= STRING_CHARACTERS_MAX)
    return separator.join(parts)


def _hash(_: EvaluationRun, string: Any, algorithm: Any) -> Any:
    require(type(algorithm) is str, algorithm in HASHES, type(string) is str)
    return hashed(string, algorithm)


def _pad(_: EvaluationRun, string: Any, width: Any, filling: Any = "") -> Any:
    require(type(string) is str, is_number(width), type(filling) is str)
    return padded(string, width, filling)


TEXTS: Final[dict[str, Native]] = {
    "contains": Native(_contains, (2,), pattern_at=1),
    "hash": Native(_hash, (2,)),
    "join": Native(_join, (1, 2)),
    "length": Native(_of_text(len), (1,)),
    "match": Native(_match, (2,), pattern_at=1),
    "lowercase": Native(_of_text(str.lower), (1,)),
    "pad": Native(_pad, (2, 3)),
    "replace": Native(_replace, (3,), pattern_at=1),
    "split": Native(_split, (2,), pattern_at=1),
    "substring": Native(_substring, (2, 3)),
    "substringAfter": Native(_substring_after, (2,)),
    "substringBefore": Native(_substring_before, (2,)),
    "trim": Native(_of_text(trimmed), (1,)),
    "uppercase": Native(_of_text(lambda string: checked_text(string.upper())), (1,)),
}
