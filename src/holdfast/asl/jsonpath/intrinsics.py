"""Intrinsic functions: `States.Format('{} of {}', $.index, States.ArrayLength($.items))`.

A call is compiled once. As on AWS, wrong arguments are reported when it runs:

    The function 'States.MathAdd($.a, 1)' had the following error: Invalid arguments in
    States.MathAdd

In quotes, only `\\'`, `\\\\`, `\\{` and `\\}` are escapes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NoReturn, TypeAlias

from holdfast.asl.jsonata.values import StrictJson
from holdfast.asl.jsonpath.intrinsic_functions import (
    FUNCTIONS,
    IntrinsicFunction,
    IntrinsicMisuse,
    unescaped,
)
from holdfast.asl.jsonpath.jsonpath import Path, PathMissing, PathSyntaxError, compile_path
from holdfast.asl.jsonpath.scope import PathScope, is_intrinsic, refuse, require_bounded

__all__ = ["Intrinsic", "compile_intrinsic", "is_intrinsic"]

_CACHED_CALLS_MAX: Final = 4_096
_CHARACTERS_MAX: Final = 20_000
_DEPTH_MAX: Final = 20

_CALL: Final = re.compile(r"(States\.\w+)\s*\(")
_STRING: Final = re.compile(r"'((?:[^'\\]|\\['\\{}])*)'")
_NUMBER: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?(?=[\s,)])")
_WORD: Final = re.compile(r"(true|false|null)(?=[\s,)])")
# A path up to the comma or bracket that ends the argument. Inside square brackets the path may
# contain both characters.
_PATH: Final = re.compile(
    r"\$(?:\[(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\]'\"])*\]|\(\)|[^\s,()\[\]])*"
)
_WORDS: Final = {"true": True, "false": False, "null": None}

_Argument: TypeAlias = Callable[[PathScope], StrictJson]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A call of an intrinsic function. `paths` are all paths that it reads, in the order of the
    text.
    """

    text: str
    paths: tuple[Path, ...]
    call: _Argument

    def evaluate(self, scope: PathScope) -> StrictJson:
        """Return the value. Raises StateError States.Runtime for every error, as AWS does."""
        try:
            return self.call(scope)
        except IntrinsicMisuse as invalid:
            self._refuse(str(invalid))

    def _refuse(self, problem: str) -> NoReturn:
        refuse(f"The function '{self.text}' had the following error: {problem}")


@lru_cache(maxsize=_CACHED_CALLS_MAX)
def compile_intrinsic(text: str) -> Intrinsic:
    """Compile a call. Raises PathSyntaxError, also for a function that does not exist."""
    if len(text) > _CHARACTERS_MAX:
        raise PathSyntaxError(text, f"is longer than {_CHARACTERS_MAX:,} characters")
    parser = _Parser(text)
    call = parser.call(0)
    parser.skip_blanks()
    if call is None or parser.at < len(text):
        raise parser.problem("is no function call")
    return Intrinsic(text, tuple(parser.paths), call)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.paths: list[Path] = []

    def problem(self, what: str) -> PathSyntaxError:
        return PathSyntaxError(self.text, f"{what} at character {self.at + 1}")

    def skip_blanks(self) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1

    def call(self, depth: int) -> _Argument | None:
        """Return the call at this place of the text; None if the text here is no call."""
        opening = self._match(_CALL)
        if opening is None:
            return None
        function = FUNCTIONS.get(opening[1])
        if function is None or depth > _DEPTH_MAX:
            raise self.problem(f"has no function {opening[1]!r:.60}, or calls nested too deep")
        arguments = self._arguments(function, depth)
        return _call(function, tuple(arguments))

    def _arguments(self, function: IntrinsicFunction, depth: int) -> list[_Argument]:
        arguments: list[_Argument] = []
        self.skip_blanks()
        if self._take(")"):
            return arguments
        while True:
            self.skip_blanks()
            arguments.append(self._argument(function.is_template and not arguments, depth))
            self.skip_blanks()
            if self._take(")"):
                return arguments
            if not self._take(","):
                raise self.problem("has no comma or )")

    def _argument(self, is_template: bool, depth: int) -> _Argument:
        call = self.call(depth + 1)
        if call is not None:
            return call
        string = self._match(_STRING)
        if string is not None:
            return _constant(string[1] if is_template else unescaped(string[1]))
        number = self._match(_NUMBER)
        if number is not None:
            return _constant(self._number(number[0]))
        word = self._match(_WORD)
        if word is not None:
            return _constant(_WORDS[word[1]])
        path = self._match(_PATH)
        if path is None:
            raise self.problem("has no argument")
        self.paths.append(compile_path(path[0]))
        return _lookup(self.paths[-1])

    def _number(self, digits: str) -> int | float:
        if not set(digits) & set(".eE"):
            return int(digits)
        number = float(digits)
        if not math.isfinite(number):
            raise self.problem("has a number that is too large")
        return number

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def _take(self, literal: str) -> bool:
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True


def _constant(value: StrictJson) -> _Argument:
    return lambda _: value


def _lookup(path: Path) -> _Argument:
    def argument(scope: PathScope) -> StrictJson:
        try:
            return scope.find(path)
        except PathMissing as missing:
            raise IntrinsicMisuse(_not_found(path, scope, missing)) from None

    return argument


def _not_found(path: Path, scope: PathScope, missing: PathMissing) -> str:
    if missing.is_misuse:
        return missing.reason
    return (
        f"The JsonPath argument for the field '{path.text}' could not be found in the input "
        f"'{scope.text_of_root(path)}'"
    )


def _call(function: IntrinsicFunction, arguments: tuple[_Argument, ...]) -> _Argument:
    has_right_count = function.count_min <= len(arguments) and (
        function.count_max is None or len(arguments) <= function.count_max
    )

    def call(scope: PathScope) -> StrictJson:
        if not has_right_count:
            raise IntrinsicMisuse.of(function.name)
        values = [argument(scope) for argument in arguments]
        require_bounded(values)
        return function.run(values, scope.moment)

    return call
