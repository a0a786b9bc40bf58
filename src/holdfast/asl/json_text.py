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
from string import digits, hexdigits
from typing import Any, Final, NoReturn

from holdfast.asl.program import Json

# The deepest nesting of objects and lists in a definition. Code that walks through a definition
# recursively relies on this limit.
DEPTH_MAX: Final = 150

_SOURCE_CHARACTERS_MAX: Final = 500
_TOKEN_CHARACTERS_MAX: Final = 256  # Jackson cuts a longer word in its message
_BLANKS: Final = " \t\n\r"
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_WORD: Final = re.compile(r"(?:[^\W\d]|\$)[\w$]*")
_TEXT: Final = re.compile(r'[^"\\\x00-\x1f]*')
_WORDS: Final[Mapping[str, bool | None]] = {"null": None, "true": True, "false": False}
_NOT_FINITE: Final = ("NaN", "Infinity")
_VALUES: Final = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_NO_COMMENT: Final = (
    "maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' not "
    "enabled for parser)"
)
_NO_BLANK: Final = r"only regular white space (\r, \n, \t) is allowed between tokens"

#: Jackson's classes of exceptions.
_PARSE: Final = "com.fasterxml.jackson.core.JsonParseException"
_END: Final = "com.fasterxml.jackson.core.io.JsonEOFException"
_EMPTY: Final = "com.fasterxml.jackson.databind.exc.MismatchedInputException"


class JsonTextError(ValueError):
    """A text that is not JSON. `message` ends with `place`, as Jackson's messages do. `exception`
    is the Java class of Jackson's exception.
    """

    def __init__(self, problem: str, place: str, exception: str) -> None:
        super().__init__(f"{problem}\n at {place}")
        self.message = f"{problem}\n at {place}"
        #: The message without its places, for a caller that adds places of its own.
        self.problem = re.split(r" \((?:start marker|for \w+ starting) at", problem)[0]
        self.place = place
        self.exception = exception


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
                # Only the whole text has no value: a container reports its own missing end.
                raise JsonTextError(
                    "No content to map due to end-of-input", self._at_line(1, 0), _EMPTY
                )
            case "{":
                return self._object(path, depth)
            case "[":
                return self._array(path, depth)
            case '"':
                self.at += 1
                return self._string("string value")
            case "]" | "}" if depth == 0:
                return self._mismatched("root", self._at_line(1, 0))
            case "}":
                return self._unexpected("expected a value")
            case _:
                return self._scalar(depth)

    def _object(self, path: str, depth: int) -> Json:
        start, found = self.at, dict[str, Json]()
        self.at += 1
        while self._has_entry("Object", start, is_first=not found):
            if self._peek() != '"':
                self._unexpected("was expecting double-quote to start field name")
            self.at += 1
            name = self._string("name")
            if name in found:
                self._fail(f"Duplicate field '{name}'", self.at)
            if self._next_in_field() != ":":
                self._unexpected("was expecting a colon to separate field name and value")
            self.at += 1
            self._next_in_field()
            found[name] = self._value(f"{path}/{name}", depth + 1)
        return found

    def _array(self, path: str, depth: int) -> Json:
        start, found = self.at, list[Json]()
        self.at += 1
        while self._has_entry("Array", start, is_first=not found):
            found.append(self._value(f"{path}[{len(found)}]", depth + 1))
        return found

    def _has_entry(self, what: str, start: int, *, is_first: bool) -> bool:
        """Go to the next entry of the container that begins at `start`. Return False after its
        close marker.
        """
        self._skip_blanks()
        close = "}" if what == "Object" else "]"
        match self._peek():
            case "":
                marker = f"(start marker at {self._place(start)})"
                self._end(f": expected close marker for {what} {marker}")
            case "}" | "]" as character:
                if character != close:
                    self._mismatched(what, self._place(start))
                self.at += 1
                return False
            case _ if is_first:
                return True
            case ",":
                self.at += 1
            case _:
                self._unexpected(f"was expecting comma to separate {what} entries")
        self._skip_blanks()
        if not self._peek():
            self._fail(f"Unexpected end-of-input within/between {what} entries", self.at)
        return True

    def _next_in_field(self) -> str:
        """Return the next character between a field's name and its value."""
        self._skip_blanks()
        return self._peek() or self._end(" within/between Object entries")

    def _mismatched(self, what: str, start: str) -> NoReturn:
        character = self._peek()
        # At the root Jackson names the other marker.
        wanted = "]" if character == "}" else "}"
        self._fail(
            f"Unexpected close marker '{character}': expected '{wanted}' "
            f"(for {what} starting at {start})",
            self.at + 1,
        )

    def _string(self, what: str) -> str:
        """Read to the closing quote. `what` is Jackson's word: "name" or "string value"."""
        start = self.at - 1
        while True:
            self.at += len(_TEXT.match(self.text, self.at)[0])  # type: ignore[index]
            match self._peek():
                case '"':
                    self.at += 1
                    return str(json.loads(self.text[start : self.at]))
                case "\\":
                    self.at += 1
                    self._escape()
                case "" if what == "name":
                    self._end(" in field name")
                case "":
                    self._end(": was expecting closing quote for a string value")
                case character:
                    self._fail(
                        f"Illegal unquoted character ({_described(character)}): has to be escaped "
                        f"using backslash to be included in {what}",
                        self.at + 1,
                    )

    def _escape(self) -> None:
        """Read what follows a backslash."""
        character = self._peek()
        self.at += 1
        if character == "u":
            for _ in range(4):
                self._hexadecimal_digit()
        elif not character:
            self.at -= 1
            self._end(" in character escape sequence")
        elif character not in '"\\/bfnrt':
            self._fail(f"Unrecognized character escape {_described(character)}", self.at)

    def _hexadecimal_digit(self) -> None:
        digit = self._peek()
        if not digit:
            self._end(" in character escape sequence")
        if digit not in hexdigits:
            self._unexpected("expected a hex-digit for character escape sequence")
        self.at += 1

    def _scalar(self, depth: int) -> Json:
        character = self._peek()
        if character == "-" or character in digits:
            return self._number(depth)
        word = _WORD.match(self.text, self.at)
        text = word[0] if word is not None else ""
        if not text:
            self._unexpected(f"expected a valid value {_VALUES}")
        cut = text[:_TOKEN_CHARACTERS_MAX]
        self.at += len(cut)
        if text in _NOT_FINITE:
            feature = "enable JsonParser.Feature.ALLOW_NON_NUMERIC_NUMBERS to allow"
            self._fail(f"Non-standard token '{text}': {feature}", self.at)
        if text not in _WORDS:
            shown = f"{cut}..." if len(cut) == _TOKEN_CHARACTERS_MAX else cut
            self._fail(f"Unrecognized token '{shown}': was expecting {_VALUES}", self.at)
        return _WORDS[text]

    def _number(self, depth: int) -> Json:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            self.at += 1
            if not self._peek():
                self._end("No digit following minus sign")
            wanted = "expected digit (0-9) to follow minus sign, for valid numeric value"
            self._unexpected(wanted, " in numeric value")
        self.at = found.end()
        following = self._peek()
        if found[1] == "0" and found.end() == found.end(1) and following and following in digits:
            self._fail("Invalid numeric value: Leading zeroes not allowed", self.at)
        if following == "." and found.end() == found.end(1):
            self._no_digit("Decimal point not followed by a digit")
        if following in ("e", "E") and found[3] is None:
            self._no_digit("Exponent indicator not followed by a digit")
        if depth == 0 and following and following not in _BLANKS:
            self._unexpected("Expected space separating root-level values")
        try:
            value: Json = json.loads(found[0])
        except ValueError:
            # Python refuses to read an integer with more than 4,300 digits.
            self._fail("Numeric value out of range", self.at)
        return value

    def _no_digit(self, problem: str) -> NoReturn:
        """Report the character after a decimal point or an exponent's letter; the point or letter
        itself at the end of the text.
        """
        if self.at + 1 < len(self.text):
            self.at += 1
        self._unexpected(problem, " in numeric value")

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip_blanks(self) -> None:
        while self._peek() and self._peek() in _BLANKS:
            self.at += 1
        character = self._peek()
        if character == "/":
            self._unexpected(_NO_COMMENT)
        if character and character < " ":
            self._fail(f"Illegal character ({_described(character)}): {_NO_BLANK}", self.at + 1)

    def _unexpected(self, expectation: str, where: str = "") -> NoReturn:
        described = _described(self._peek())
        self._fail(f"Unexpected character ({described}){where}: {expectation}", self.at + 1)

    def _end(self, problem: str) -> NoReturn:
        text = f"Unexpected end-of-input{problem}"
        raise JsonTextError(text, self._place(len(self.text)), _END)

    def _fail(self, problem: str, index: int) -> NoReturn:
        raise JsonTextError(problem, self._place(index), _PARSE)

    def _place(self, index: int) -> str:
        return self._at_line(*self.line_and_column(index))

    def _at_line(self, line: int, column: int) -> str:
        source = self.text[:_SOURCE_CHARACTERS_MAX]
        left = len(self.text) - len(source)
        more = f"[truncated {left} chars]" if left else ""
        return f'[Source: (String)"{source}"{more}; line: {line}, column: {column}]'


def _described(character: str) -> str:
    """Return the character as Jackson describes it: "'é' (code 233)"."""
    code = ord(character)
    if code < 0x20 or 0x7F <= code <= 0x9F:
        return f"(CTRL-CHAR, code {code})"
    return f"'{character}' (code {code}{f' / 0x{code:x}' if code > 0xFF else ''})"
