"""JSON text with the place of each value in it, and AWS's error messages for text that is not JSON.

`read_json` is Python's parser. If it refuses a text, `Scanner` reads the text again, more slowly,
to find out what is wrong and where. AWS reads JSON with the Java library Jackson, so the messages
are those of Jackson:

    Unrecognized token 'not': was expecting (JSON String, Number, Array, Object or token 'null', …
     at [Source: (String)"not a definition"; line: 1, column: 4]
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from holdfast.asl.program import Json

# The deepest nesting of objects and lists in a definition. Code that walks through a definition
# recursively relies on this limit.
DEPTH_MAX: Final = 150

_SOURCE_CHARACTERS_MAX: Final = 500
_BLANKS: Final = " \t\n\r"
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORD: Final = re.compile(r"[^\W]+")
_TEXT: Final = re.compile(r'[^"\\\x00-\x1f]*')
_WORDS: Final[Mapping[str, bool | None]] = {"null": None, "true": True, "false": False}
_EXPECTED: Final = (
    "was expecting (JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
)


class JsonTextError(ValueError):
    """A text that is not JSON. `message` ends with `place`, as Jackson's messages do."""

    def __init__(self, problem: str, place: str) -> None:
        super().__init__(f"{problem}\n at {place}")
        self.message = f"{problem}\n at {place}"
        #: The message without its places, for a caller that adds places of its own.
        self.problem = problem.partition(" (start marker at")[0]
        self.place = place


class JsonDepthError(ValueError):
    """A text that is nested more deeply than DEPTH_MAX."""


def read_json(text: str) -> Json:
    """Read one JSON document. Raises JsonDepthError, and JsonTextError. An object with a repeated
    field is an error, too.
    """
    try:
        value: Json = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse, parse_int=int
        )
    except (ValueError, RecursionError):
        return Scanner(text).document()
    if depth_of(value) > DEPTH_MAX:
        raise JsonDepthError
    return value


def depth_of(value: Json) -> int:
    """Return the levels of objects and lists, counted up to DEPTH_MAX + 1."""
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level and depth <= DEPTH_MAX:
        depth += 1
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
    return depth


def positions(text: str) -> Mapping[str, tuple[int, int]]:
    """Return line and column (from 1) of every value, by its location as diagnostics write it.

    `{"States": {"A": {"Choices": [{}]}}}` gives {"/States/A/Choices[0]": (1, 32), …}. Raises the
    errors of `read_json`.
    """
    scanner = Scanner(text)
    scanner.document()
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    lines = ((place, index, bisect_right(starts, index)) for place, index in scanner.places.items())
    return {place: (line, index - starts[line - 1] + 1) for place, index, line in lines}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _refuse(_: str) -> NoReturn:
    raise ValueError


@dataclass
class Scanner:
    """Reads one document. `places` maps each location to the index of its value in the text."""

    text: str
    at: int = 0
    places: dict[str, int] = field(default_factory=dict)

    def document(self) -> Json:
        value = self._value("", 0)
        self._skip_blanks()
        if self.at < len(self.text):
            end = self.at
            # If the text is not JSON at all, this call raises the error that says so.
            self._value("", 0)
            self._fail("Unexpected text after the end of the JSON value", end)
        return value

    def line_and_column(self, index: int) -> tuple[int, int]:
        line = self.text.count("\n", 0, index) + 1
        return line, index - self.text.rfind("\n", 0, index)

    def _value(self, path: str, depth: int) -> Json:
        self._skip_blanks()
        if depth >= DEPTH_MAX and self._peek() in ("{", "["):
            raise JsonDepthError
        self.places[path or "/"] = self.at
        match self._peek():
            case "":
                return self._fail("No content to map due to end-of-input", self.at)
            case "{":
                return self._object(path, depth)
            case "[":
                return self._array(path, depth)
            case '"':
                self.at += 1
                return self._string()
            case _:
                return self._scalar()

    def _object(self, path: str, depth: int) -> Json:
        start, found = self.at, dict[str, Json]()
        self.at += 1
        while self._next("Object", start) != "}":
            if found:
                self._take_comma("Object", "}")
            if self._next("Object", start) != '"':
                self._unexpected("was expecting double-quote to start field name")
            self.at += 1
            name = self._string()
            if name in found:
                self._fail(f"Duplicate field '{name}'", self.at)
            if self._next("Object", start) != ":":
                self._unexpected("was expecting a colon to separate field name and value")
            self.at += 1
            self._next("Object", start)
            found[name] = self._value(f"{path}/{name}", depth + 1)
        self.at += 1
        return found

    def _array(self, path: str, depth: int) -> Json:
        start, found = self.at, list[Json]()
        self.at += 1
        while self._next("Array", start) != "]":
            if found:
                self._take_comma("Array", "]")
            self._next("Array", start)
            found.append(self._value(f"{path}[{len(found)}]", depth + 1))
        self.at += 1
        return found

    def _take_comma(self, what: str, close: str) -> None:
        character = self._peek()
        if character != ",":
            if character in "]}":
                self._fail(
                    f"Unexpected close marker '{character}': expected '{close}'", self.at + 1
                )
            entries = "Object" if what == "Object" else "Array"
            self._unexpected(f"was expecting comma to separate {entries} entries")
        self.at += 1

    def _next(self, what: str, start: int) -> str:
        """Return the next character that is not blank. Raises at the end of the text."""
        self._skip_blanks()
        if self.at >= len(self.text):
            opened = self._place(start + 1)
            self._fail(
                f"Unexpected end-of-input: expected close marker for {what} "
                f"(start marker at {opened})",
                self.at,
            )
        return self.text[self.at]

    def _string(self) -> str:
        start = self.at - 1
        while True:
            self.at += len(_TEXT.match(self.text, self.at)[0])  # type: ignore[index]
            match self._peek():
                case '"':
                    self.at += 1
                    try:
                        return str(json.loads(self.text[start : self.at]))
                    except ValueError:
                        self._fail("Unrecognized character escape", self.at)
                case "\\":
                    self.at += 2
                case "":
                    self._fail("Unexpected end-of-input in VALUE_STRING", self.at)
                case character:
                    self._fail(
                        f"Illegal unquoted character ((CTRL-CHAR, code {ord(character)})): has to "
                        "be escaped using backslash to be included in string value",
                        self.at + 1,
                    )

    def _scalar(self) -> Json:
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            following = self._peek()
            if following and following not in _BLANKS + ",]}":
                self._unexpected("Expected space separating root-level values")
            return self._number(number[0])
        word = _WORD.match(self.text, self.at)
        if word is None:
            self._unexpected(
                "expected a valid value (JSON String, Number, Array, Object or token "
                "'null', 'true' or 'false')"
            )
        self.at = word.end()
        if word[0] not in _WORDS:
            self._fail(f"Unrecognized token '{word[0]}': {_EXPECTED}", self.at)
        return _WORDS[word[0]]

    def _number(self, text: str) -> Json:
        try:
            value: Json = json.loads(text)
        except ValueError:
            # Python refuses to read an integer with more than 4,300 digits.
            self._fail("Numeric value out of range", self.at)
        return value

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip_blanks(self) -> None:
        while self._peek() and self._peek() in _BLANKS:
            self.at += 1

    def _unexpected(self, expectation: str) -> NoReturn:
        character = self._peek()
        problem = f"Unexpected character ('{character}' (code {ord(character)})): {expectation}"
        self._fail(problem, self.at + 1)

    def _fail(self, problem: str, index: int) -> NoReturn:
        raise JsonTextError(problem, self._place(index))

    def _place(self, index: int) -> str:
        line, column = self.line_and_column(index)
        source = self.text[:_SOURCE_CHARACTERS_MAX]
        left = len(self.text) - len(source)
        more = f"[truncated {left} chars]" if left else ""
        return f'[Source: (String)"{source}"{more}; line: {line}, column: {column}]'
