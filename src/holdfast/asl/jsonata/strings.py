"""Text functions for jsonata-python: the matcher protocol, and results of limited length.

A matcher is a regular expression, or a function from a text to `{match, start, end, groups, next}`
or undefined. `next()` returns the match after that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from jsonata import JException, Utils
from jsonata.functions import Functions

from holdfast.asl.jsonata import costs, values
from holdfast.asl.jsonata.convert import is_function
from holdfast.asl.jsonata.evaluation import call, evaluator
from holdfast.asl.jsonata.regex import CompiledRegex
from holdfast.asl.jsonata.texts import (
    TextMatch,
    after,
    before,
    padded,
    replaced,
    shown_match,
    split_at,
    trimmed,
    with_references,
)


def _matches(matcher: Any, text: str, function: str) -> Iterator[TextMatch]:
    if isinstance(matcher, CompiledRegex):
        for match in matcher.matches(text, evaluator()):
            if not match.text:
                raise JException("D1004", -1)
            yield match
        return
    found, end = call(matcher, text), 0
    while found is not None:
        match = _custom_match(found, function)
        if not end <= match.start <= match.end:
            # Refuse a match that begins before the end of the match before it. Each such match
            # would make the text longer.
            raise JException("T1010", -1, function)
        yield match
        found, end = call(found["next"]), match.end


def _custom_match(found: Any, function: str) -> TextMatch:
    if (
        not isinstance(found, dict)
        or not isinstance(found.get("groups"), list)
        or not Utils.is_numeric(found.get("start"))
        or not Utils.is_numeric(found.get("end"))
        or not is_function(found.get("next"))
        # Refuse lists and objects. A list could contain itself many times and would be too long as
        # a text.
        or any(isinstance(part, list | dict) for part in [found.get("match"), *found["groups"]])
    ):
        raise JException("T1010", -1, function)
    return TextMatch(
        str(found.get("match")), int(found["start"]), int(found["end"]), found["groups"]
    )


def _contains(text: str | None, token: Any) -> bool | None:
    if text is None or token is None:
        return None
    if isinstance(token, str):
        evaluator().charge(costs.searching_items(text, token))
        return token in text
    return next(_matches(token, text, "contains"), None) is not None


def _match(text: str | None, matcher: Any, limit: float | None) -> Any:
    if text is None or matcher is None:
        return None
    if limit is not None and limit < 0:
        raise JException("D3040", -1, limit)
    found = _limited(_matches(matcher, text, "match"), limit)
    return Utils.create_sequence_from_iter(map(shown_match, found))


def _limited(matches: Iterator[TextMatch], limit: float | None) -> Iterator[TextMatch]:
    return matches if limit is None else islice(matches, math.ceil(limit))


def _split(text: str | None, separator: Any, limit: float | None) -> list[str] | None:
    if text is None or separator is None:
        return None
    if limit is not None and limit < 0:
        raise JException("D3020", -1, limit)
    if separator == "":
        parts = list(text)
    elif isinstance(separator, str):
        evaluator().charge(costs.searching_items(text, separator))
        parts = text.split(separator)
    else:
        parts = split_at(text, _matches(separator, text, "split"))
    evaluator().charge(len(parts))
    return parts if limit is None else parts[: int(limit)]


def _replace(text: str | None, pattern: Any, replacement: Any, limit: float | None) -> str | None:
    if text is None or pattern is None or replacement is None:
        return None
    if pattern == "":
        raise JException("D3010", -1)
    if limit is not None and limit < 0:
        raise JException("D3011", -1, limit)
    if isinstance(pattern, str):
        found = _occurrences(text, pattern)
    else:
        found = _matches(pattern, text, "replace")
    is_literal = isinstance(pattern, str)
    return replaced(
        text,
        _limited(found, limit),
        lambda match: _replaced(match, replacement, is_literal=is_literal),
    )


def _occurrences(text: str, part: str) -> Iterator[TextMatch]:
    evaluator().charge(costs.searching_items(text, part))
    start = text.find(part)
    while start >= 0:
        # Charge for each match, because a million matches take a second.
        evaluator().charge(4)
        yield TextMatch(part, start, start + len(part), [])
        start = text.find(part, start + len(part))


def _replaced(match: TextMatch, replacement: Any, *, is_literal: bool) -> str:
    if not isinstance(replacement, str):
        shown = {
            "match": match.text,
            "start": match.start,
            "end": match.end,
            "groups": match.groups,
        }
        result = call(replacement, shown)
        if not isinstance(result, str):
            raise JException("D3012", -1, result)
        return result
    if is_literal:
        return replacement
    evaluator().charge(len(replacement))
    return with_references(replacement, match)


def _join(texts: list[str] | None, separator: str | None) -> str | None:
    if texts is None:
        return None
    glue = separator or ""
    if sum(map(len, texts)) + len(glue) * len(texts) > 2 * values.STRING_CHARACTERS_MAX:
        raise values.budget_error("joined texts into one that is too long")
    return values.checked_text(glue.join(texts))


def _pad(text: str | None, width: float | None, filling: str | None) -> str | None:
    return text if text is None or width is None else padded(text, width, filling or "")


def _substring_before(text: str | None, part: str | None) -> str | None:
    if text is None or part is None:
        return text
    evaluator().charge(costs.searching_items(text, part))
    return before(text, part)


def _substring_after(text: str | None, part: str | None) -> str | None:
    if text is None or part is None:
        return text
    evaluator().charge(costs.searching_items(text, part))
    return after(text, part)


def _trim(text: str | None) -> str | None:
    return text if text is None else trimmed(text)


def _url(function: str, convert: Callable[[str], str]) -> Callable[[str | None], str | None]:
    def converted(text: str | None) -> str | None:
        try:
            return text if text is None else convert(text)
        except UnicodeError:
            raise JException("D3140", -1, function, text) from None

    return converted


FUNCTIONS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "contains": ("<s-(sf):b>", _contains),
    "decodeUrl": ("<s-:s>", _url("decodeUrl", Functions.decode_url)),
    "decodeUrlComponent": ("<s-:s>", _url("decodeUrlComponent", Functions.decode_url_component)),
    "encodeUrl": ("<s-:s>", _url("encodeUrl", Functions.encode_url)),
    "encodeUrlComponent": (
        "<s-:s>",
        _url("encodeUrlComponent", Functions.encode_url_component),
    ),
    "join": ("<a<s>s?:s>", _join),
    "lowercase": ("<s-:s>", lambda text: text if text is None else text.lower()),
    "match": ("<s-f<s:o>n?:a<o>>", _match),
    "pad": ("<s-ns?:s>", _pad),
    "replace": ("<s-(sf)(sf)n?:s>", _replace),
    "split": ("<s-(sf)n?:a<s>>", _split),
    "substringAfter": ("<s-s:s>", _substring_after),
    "substringBefore": ("<s-s:s>", _substring_before),
    "trim": ("<s-:s>", _trim),
}
