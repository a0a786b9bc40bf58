"""Regular expressions of JSONata: JavaScript's syntax, limited time, and the protocol of its
matches.

The module `regex` runs them because it has a time-out. A pattern that backtracks without end would
otherwise block a worker that serves other executions.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any, Final

import regex  # type: ignore[import-untyped]
from jsonata import JException, Jsonata

from holdfast.asl.jsonata.texts import Allowance, TextMatch, TextPattern
from holdfast.asl.jsonata.values import budget_error

# These parts of a JavaScript pattern have another meaning in Python: character classes are ASCII
# only, and `$` does not match before a final line feed.
_PIECE: Final = re.compile(
    r"\\.|\[\^?\]?|\]|\$|\(\?<(?=[A-Za-z_$])|\(\?(?![:=!]|<[=!])|\{\d+(?:,\d*)?\}|.", re.DOTALL
)
_OUTSIDE: Final = {r"\d": "[0-9]", r"\D": "[^0-9]", r"\w": "[A-Za-z0-9_]", r"\W": "[^A-Za-z0-9_]"}
_INSIDE: Final = {r"\d": "0-9", r"\w": "A-Za-z0-9_", "[": r"\["}
_CHARACTERS_PER_ITEM: Final = 8  # this many characters of a match and its groups cost one item


def python_pattern(source: str, *, multiline: bool) -> str:
    """Return a JavaScript pattern in the syntax of `regex`: `\\d+$` gives `[0-9]+\\Z`."""
    parts: list[str] = []
    in_class = False
    for piece in _PIECE.findall(source):
        if in_class:
            in_class = piece != "]"
            parts.append(_INSIDE.get(piece, piece))
        elif piece == "[]":
            parts.append(r"(?!)")
        elif piece == "[^]":
            parts.append(r"(?s:.)")
        elif piece.startswith("["):
            in_class = True
            parts.append(piece)
        elif piece == "$":
            parts.append("$" if multiline else r"\Z")
        elif piece == "(?<":
            parts.append("(?P<")
        elif piece == "(?":
            # JavaScript has neither recursion nor inline flags, so refuse both. Recursion could
            # also use up the memory.
            raise JException("S0302", -1)
        elif piece == "{":
            # This brace does not begin a count, so it is text. Without the escape, `regex` would
            # read it as a fuzzy match.
            parts.append(r"\{")
        else:
            parts.append(_OUTSIDE.get(piece, piece))
    return "".join(parts)


def compile_regex(pattern: str, flags: Any) -> CompiledRegex:
    """Compile a regular expression. The parser of jsonata-python calls this for
    `/pattern/flags`.
    """
    options = regex.VERSION0
    if flags.case_insensitive:
        options |= regex.IGNORECASE
    if flags.multiline:
        options |= regex.MULTILINE
    try:
        compiled = regex.compile(python_pattern(pattern, multiline=flags.multiline), options)
    except regex.error:
        raise JException("S0302", -1) from None
    return CompiledRegex(compiled)


class CompiledRegex(TextPattern):
    """A regular expression in the form that the library needs: search, finditer, sub and split."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def finditer(self, text: str) -> Iterator[Any]:
        """Yield every match. An empty match is refused (D1004), because it would repeat without
        end.
        """
        for match in self._found(text, Jsonata.CURRENT.jsonata):
            if not match.group():
                raise JException("D1004", -1)
            yield match

    def matches(self, text: str, allowance: Allowance) -> Iterator[TextMatch]:
        for found in self._found(text, allowance):
            groups = ["" if group is None else group for group in found.groups()]
            yield TextMatch(found.group(), found.start(), found.end(), groups)

    def _found(self, text: str, allowance: Allowance) -> Iterator[Any]:
        matches = self._compiled.finditer(text, timeout=allowance.regex_seconds_left)
        while (match := _next_within(allowance, matches)) is not None:
            # Charge for the text of every group. Each of a thousand groups may contain the whole
            # text.
            characters = sum(end - start for start, end in match.regs)
            allowance.charge(characters // _CHARACTERS_PER_ITEM)
            yield match

    # The library recognises a regular expression by these names. It never calls them, because
    # Holdfast replaces $replace and $split.
    search = sub = split = finditer


def _next_within(allowance: Allowance, matches: Iterator[Any]) -> Any:
    begun = time.perf_counter()
    try:
        return next(matches, None)
    except TimeoutError:
        raise budget_error("spent too long in a regular expression") from None
    finally:
        spent = time.perf_counter() - begun
        # Keep the time above zero, because `regex` would take zero for no time-out.
        allowance.regex_seconds_left = max(allowance.regex_seconds_left - spent, 1e-6)


def match_object(matches: Iterator[Any]) -> dict[str, Any] | None:
    """Return the next match as an object of JSONata's matcher protocol."""
    match = next(matches, None)
    if match is None:
        return None
    return {
        "match": match.group(),
        "start": match.start(),
        "end": match.end(),
        "groups": list(match.groups()),
        "next": Jsonata.JLambda(lambda: match_object(matches)),
    }
