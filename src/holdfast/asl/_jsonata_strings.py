"""Text functions for jsonata-python: the matcher protocol, and texts of bounded length.

A matcher is a regular expression, or any function that takes a text and gives
`{match, start, end, groups, next}` or undefined, where `next()` gives the match after that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from jsonata import JException, Utils
from jsonata.functions import Functions

from holdfast.asl import _jsonata_values as values
from holdfast.asl._jsonata_calls import call, evaluator
from holdfast.asl._jsonata_convert import is_function
from holdfast.asl._jsonata_regex import CompiledRegex

_SPACES: Final = re.compile(r"[ \t\n\r]+")
_REFERENCE: Final = re.compile(r"\$(\$|[0-9]+)?")


@dataclass(frozen=True, slots=True)
class _Match:
    text: str
    start: int
    end: int
    groups: list[Any]


def _matches(matcher: Any, text: str, function: str) -> Iterator[_Match]:
    if isinstance(matcher, CompiledRegex):
        for found in matcher.finditer(text):
            groups = ["" if group is None else group for group in found.groups()]
            yield _Match(found.group(), found.start(), found.end(), groups)
        return
    found = call(matcher, text)
    while found is not None:
        yield _custom_match(found, function)
        found = call(found["next"])


def _custom_match(found: Any, function: str) -> _Match:
    if (
        not isinstance(found, dict)
        or not isinstance(found.get("groups"), list)
        or not Utils.is_numeric(found.get("start"))
        or not Utils.is_numeric(found.get("end"))
        or not is_function(found.get("next"))
    ):
        raise JException("T1010", -1, function)
    return _Match(str(found.get("match")), int(found["start"]), int(found["end"]), found["groups"])


def _contains(text: str | None, token: Any) -> bool | None:
    if text is None or token is None:
        return None
    if isinstance(token, str):
        return token in text
    return next(_matches(token, text, "contains"), None) is not None


def _match(text: str | None, matcher: Any, limit: float | None) -> Any:
    if text is None or matcher is None:
        return None
    if limit is not None and limit < 0:
        raise JException("D3040", -1, limit)
    found = _limited(_matches(matcher, text, "match"), limit)
    return Utils.create_sequence_from_iter(
        {"match": match.text, "index": match.start, "groups": match.groups} for match in found
    )


def _limited(matches: Iterator[_Match], limit: float | None) -> Iterator[_Match]:
    return matches if limit is None else islice(matches, math.ceil(limit))


def _split(text: str | None, separator: Any, limit: float | None) -> list[str] | None:
    if text is None or separator is None:
        return None
    if limit is not None and limit < 0:
        raise JException("D3020", -1, limit)
    if separator == "":
        parts = list(text)
    elif isinstance(separator, str):
        parts = text.split(separator)
    else:
        parts = []
        start = 0
        for match in _matches(separator, text, "split"):
            parts.append(text[start : match.start])
            start = match.end
        parts.append(text[start:])
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
    parts: list[str] = []
    start = length = 0
    for match in _limited(found, limit):
        parts.append(text[start : match.start])
        parts.append(_replaced(match, replacement, is_literal=isinstance(pattern, str)))
        start = match.end
        length += len(parts[-1])
        if length > values.STRING_CHARACTERS_MAX:
            break  # refused below, before a small text has become a huge one
    parts.append(text[start:])
    return values.checked_text("".join(parts))


def _occurrences(text: str, part: str) -> Iterator[_Match]:
    start = text.find(part)
    while start >= 0:
        yield _Match(part, start, start + len(part), [])
        start = text.find(part, start + len(part))


def _replaced(match: _Match, replacement: Any, *, is_literal: bool) -> str:
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
    return _REFERENCE.sub(
        lambda reference: _referred(reference[1], match.groups, match.text), replacement
    )


def _referred(reference: str | None, groups: list[Any], whole: str) -> str:
    """`$$`, `$0` and `$1`: as many digits as there may be groups, the rest is text."""
    if reference is None or reference == "$":
        return "$"
    if reference[0] == "0":
        return whole + reference[1:]
    size = len(str(len(groups)))
    if size > 1 and int(reference[:size]) > len(groups):
        size -= 1
    index = int(reference[:size])
    group = str(groups[index - 1]) if index <= len(groups) else ""
    return group + reference[size:]


def _join(texts: list[str] | None, separator: str | None) -> str | None:
    if texts is None:
        return None
    glue = separator or ""
    if sum(map(len, texts)) + len(glue) * len(texts) > 2 * values.STRING_CHARACTERS_MAX:
        raise values.budget_error("joined texts into one that is too long")
    return values.checked_text(glue.join(texts))


def _pad(text: str | None, width: float | None, filling: str | None) -> str | None:
    if text is None or width is None:
        return text
    if abs(width) > values.STRING_CHARACTERS_MAX:
        raise values.budget_error("padded a text to more than it may have")
    missing = abs(int(width)) - len(text)
    if missing <= 0:
        return text
    fill = filling or " "
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return text + padding if width > 0 else padding + text


def _trim(text: str | None) -> str | None:
    return text if text is None else _SPACES.sub(" ", text).strip(" ")


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
    "trim": ("<s-:s>", _trim),
}
