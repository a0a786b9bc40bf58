"""Functions for text that both JSONata engines use: hashes, padding, trimming, regular
expressions.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from holdfast.asl.jsonata import values
from holdfast.lazy_dataclass import dataclass

HASHES: Final = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}
_SPACES: Final = re.compile(r"[ \t\n\r]+")
_REFERENCE: Final = re.compile(r"\$(\$|[0-9]+)?")


@dataclass(frozen=True, slots=True)
class TextMatch:
    """One match of a pattern. A group that did not match is the empty text."""

    text: str
    start: int
    end: int
    groups: list[Any]


class Allowance(Protocol):
    """The remaining budget of an evaluation. One pattern may be tried a thousand times, so each use
    is charged.
    """

    regex_seconds_left: float

    def charge(self, items: int) -> None:
        """Charge this many items. Raises JsonataError when fewer are left."""


class TextPattern(ABC):
    """A regular expression in the syntax tree, where the parser has put it."""

    @abstractmethod
    def matches(self, text: str, allowance: Allowance) -> Iterator[TextMatch]:
        """Yield every match, including empty ones. Raises JsonataError when the time or the items
        are used up.
        """


def hashed(text: str, algorithm: str) -> str:
    """Return $hash of the text. `algorithm` is a key of HASHES."""
    return hashlib.new(HASHES[algorithm], text.encode(), usedforsecurity=False).hexdigest()


def padded(text: str, width: float, filling: str) -> str:
    """Return the result of $pad: filled on the right, or for a negative width on the left."""
    if abs(width) > values.STRING_CHARACTERS_MAX:
        raise values.budget_error("padded a text to more than it may have")
    missing = abs(int(width)) - len(text)
    if missing <= 0:
        return text
    fill = filling or " "
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return text + padding if width > 0 else padding + text


def trimmed(text: str) -> str:
    """Return the result of $trim: no spaces at the ends, and one space between words."""
    return _SPACES.sub(" ", text).strip(" ")


def before(text: str, part: str) -> str:
    """Return the result of $substringBefore: the whole text when it does not contain the part."""
    at = text.find(part)
    return text if at < 0 else text[:at]


def after(text: str, part: str) -> str:
    """Return the result of $substringAfter: the whole text when it does not contain the part."""
    at = text.find(part)
    return text if at < 0 else text[at + len(part) :]


def split_at(text: str, matches: Iterable[TextMatch]) -> list[str]:
    """Return the parts of the text between the matches, as $split does."""
    parts = []
    start = 0
    for match in matches:
        parts.append(text[start : match.start])
        start = match.end
    parts.append(text[start:])
    return parts


def replaced(
    text: str, matches: Iterable[TextMatch], replacement: Callable[[TextMatch], str]
) -> str:
    """Return the text with a replacement for each match, as $replace does. Raises JsonataError when
    the result is too long.
    """
    parts: list[str] = []
    start = length = 0
    for match in matches:
        parts.append(text[start : match.start])
        parts.append(replacement(match))
        start = match.end
        length += len(parts[-1])
        if length > values.STRING_CHARACTERS_MAX:
            # Stop before the result becomes huge. The caller refuses a text of this length.
            break
    parts.append(text[start:])
    return values.checked_text("".join(parts))


def shown_match(match: TextMatch) -> dict[str, Any]:
    """Return the object that $match returns for a match."""
    return {"match": match.text, "index": match.start, "groups": match.groups}


def with_references(replacement: str, match: TextMatch) -> str:
    """Return a replacement such as `$1 of $0` with the groups of a match. Raises JsonataError when
    the result is too long.
    """
    references = (
        TextMatch(found[0], found.start(), found.end(), [found[1]])
        for found in _REFERENCE.finditer(replacement)
    )
    return replaced(
        replacement,
        references,
        lambda reference: _referred(reference.groups[0], match.groups, match.text),
    )


def _referred(reference: str | None, groups: list[Any], whole: str) -> str:
    """Return the text for `$$`, `$0` or `$1`. The number takes as many digits as a group's number
    can have; the rest is text.
    """
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
