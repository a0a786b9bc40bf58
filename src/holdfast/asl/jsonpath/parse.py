"""The parser of paths: `$.a['b c'][0]` becomes input, Child a, Child b c, Index 0.

It is imported for the first path that is more than names with dots, because its import makes a cold
start slower. For the same reason the nodes are named tuples, whose classes are created faster than
dataclasses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias, TypeVar

from holdfast.asl.jsonata.values import StrictJson
from holdfast.asl.jsonpath.roots import CONTEXT, INPUT, PathSyntaxError

_FILTER_DEPTH_MAX: Final = 20

_VARIABLE: Final = re.compile(r"\$([^\W\d]\w*)")
_NAME: Final = re.compile(r"[^.\[\]\s]+")
_FILTER_NAME: Final = re.compile(r"[^.\[\]\s()=!<>&|,~]+(?:\(\))?")
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")
_SLICE: Final = re.compile(r"(-?[0-9]{1,18})?\s*:\s*(-?[0-9]{1,18})?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?")
_FROM_END: Final = re.compile(r"\(\s*@\.length\s*-\s*([0-9]{1,18})\s*\)")
# A text without quotes is allowed, too, as in a linter that follows AWS.
_WORD: Final = re.compile(r"[^\W\d][\w-]*")
_OPERATOR: Final = re.compile(r"==|!=|<=|>=|=~|<|>|(?:in|nin)\b")
_REGEX: Final = re.compile(r"/((?:[^/\\]|\\.)*)/([a-z]*)")
_WORDS: Final[Mapping[str, StrictJson]] = {"true": True, "false": False, "null": None}
_Item = TypeVar("_Item")


class NamedChild(NamedTuple):
    name: str


class NamedChildren(NamedTuple):
    """`['a','b']` before other steps: those are applied to each of the two."""

    names: tuple[str, ...]


class Merge(NamedTuple):
    """`['a','b']` at the end of a path: an object with those fields that exist."""

    names: tuple[str, ...]


class IndexStep(NamedTuple):
    at: int


class Indexes(NamedTuple):
    """A step with indexes: `[0,2]`."""

    indexes: tuple[int, ...]


class Slice(NamedTuple):
    """A step with a slice: `[1:5]`, `[-2:]`."""

    start: int | None
    end: int | None


class Wildcard(NamedTuple):
    """A step to all members: `.*`, `[*]`."""


class Descend(NamedTuple):
    """`..`: the next step is applied to every node from here down."""

    step: PlainStep


class FilterStep(NamedTuple):
    """A step with a filter: `[?(…)]`."""

    condition: Condition


PlainStep: TypeAlias = (
    NamedChild | NamedChildren | Merge | IndexStep | Indexes | Slice | Wildcard | FilterStep
)
PathStep: TypeAlias = PlainStep | Descend


class FilterConstant(NamedTuple):
    value: StrictJson


class FilterPattern(NamedTuple):
    """A regular expression in a filter: `/text.*/i`."""

    source: str
    is_case_ignored: bool


class PathOperand(NamedTuple):
    """`@.a` of the item (`is_of_item`), or `$.a` of the whole document."""

    is_of_item: bool
    steps: tuple[PathStep, ...]


Operand: TypeAlias = FilterConstant | FilterPattern | PathOperand


class FilterComparison(NamedTuple):
    left: Operand
    operator: str
    right: Operand


class Exists(NamedTuple):
    operand: Operand


class Not(NamedTuple):
    condition: Condition


class All(NamedTuple):
    conditions: tuple[Condition, ...]


class AnyOf(NamedTuple):
    conditions: tuple[Condition, ...]


Condition: TypeAlias = FilterComparison | Exists | Not | All | AnyOf


def parse_path(text: str) -> tuple[str, tuple[PathStep, ...]]:
    """Return the root ("$", "$$" or a variable's name) and the steps. Raises PathSyntaxError."""
    cursor = _Cursor(text)
    root = cursor.root()
    steps = cursor.steps(_NAME)
    if cursor.at < len(text):
        raise cursor.problem("is not understood")
    return root, steps


def keys_of(steps: tuple[PathStep, ...]) -> tuple[str | int, ...] | None:
    """Return the names and indexes of a definite path; None for any other path."""
    keys: list[str | int] = []
    for step in steps:
        match step:
            case NamedChild(name):
                keys.append(name)
            case IndexStep(index):
                keys.append(index)
            case _:
                return None
    return tuple(keys)


def _last(step: PathStep) -> PathStep:
    match step:
        case NamedChildren(names):
            return Merge(names)
        case Descend(NamedChildren(names)):
            return Descend(Merge(names))
        case _:
            return step


class _Cursor:
    """Reads one path, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0

    def problem(self, what: str) -> PathSyntaxError:
        return PathSyntaxError(self.text, f"{what} at character {self.at + 1}")

    def root(self) -> str:
        variable = _VARIABLE.match(self.text)
        if variable is not None:
            self.at = variable.end()
            return variable[1]
        for root in (CONTEXT, INPUT):
            if self.take(root):
                return root
        raise self.problem("must begin with $")

    def take(self, literal: str) -> bool:
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.take(literal):
            raise self.problem(f"has no {literal}")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def skip_blanks(self) -> None:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1

    def steps(self, name: re.Pattern[str]) -> tuple[PathStep, ...]:
        """Return the steps up to the first character that cannot begin a step."""
        steps: list[PathStep] = []
        while True:
            if self.take(".."):
                is_bracket = self.take("[")
                step = self._bracket() if is_bracket else self._dotted(name)
                steps.append(Descend(step))
            elif self.take("."):
                steps.append(self._bracket() if self.take("[") else self._dotted(name))
            elif self.take("["):
                steps.append(self._bracket())
            else:
                return (*steps[:-1], *map(_last, steps[-1:]))

    def _dotted(self, name: re.Pattern[str]) -> PlainStep:
        if self.take("*"):
            return Wildcard()
        found = self.match(name)
        if found is None:
            raise self.problem("has no name")
        return NamedChild(found[0])

    def _bracket(self) -> PlainStep:
        self.skip_blanks()
        step = self._in_bracket()
        self.skip_blanks()
        self.expect("]")
        return step

    def _in_bracket(self) -> PlainStep:
        if self.take("*"):
            return Wildcard()
        if self.take("?"):
            self.skip_blanks()
            self.expect("(")
            condition = self._any_of()
            self.expect(")")
            return FilterStep(condition)
        if self.text[self.at : self.at + 1] in ("'", '"'):
            names = self._list_of(self._quoted)
            return NamedChild(names[0]) if len(names) == 1 else NamedChildren(tuple(names))
        window = self.match(_SLICE)
        if window is not None:
            start, end = (None if bound is None else int(bound) for bound in window.groups())
            return Slice(start, end)
        from_end = self.match(_FROM_END)
        if from_end is not None:
            return IndexStep(-int(from_end[1]))
        indexes = self._list_of(self._integer)
        return IndexStep(indexes[0]) if len(indexes) == 1 else Indexes(tuple(indexes))

    def _list_of(self, read: Callable[[], _Item]) -> list[_Item]:
        found = [read()]
        while True:
            self.skip_blanks()
            if not self.take(","):
                return found
            self.skip_blanks()
            found.append(read())

    def _integer(self) -> int:
        found = self.match(_INTEGER)
        if found is None:
            raise self.problem("has no index")
        return int(found[0])

    def _quoted(self) -> str:
        """Return a quoted name. Only the quote can be escaped; any other backslash is part of the
        name.
        """
        quote = self.text[self.at : self.at + 1]
        if quote not in ("'", '"'):
            raise self.problem("has no quoted name")
        characters: list[str] = []
        self.at += 1
        while not self.take(quote):
            if self.at >= len(self.text):
                raise self.problem("has a quote that is not closed")
            if self.text.startswith(f"\\{quote}", self.at):
                self.at += 1
            characters.append(self.text[self.at])
            self.at += 1
        return "".join(characters)

    # -- filters ----------------------------------------------------------------------------------

    def _any_of(self) -> Condition:
        conditions = [self._all()]
        while self.take("||"):
            conditions.append(self._all())
        return conditions[0] if len(conditions) == 1 else AnyOf(tuple(conditions))

    def _all(self) -> Condition:
        conditions = [self._single()]
        while self.take("&&"):
            conditions.append(self._single())
        return conditions[0] if len(conditions) == 1 else All(tuple(conditions))

    def _single(self) -> Condition:
        self._depth += 1
        if self._depth > _FILTER_DEPTH_MAX:
            raise self.problem("is nested too deep")
        self.skip_blanks()
        condition: Condition
        if self.take("!"):
            condition = Not(self._single())
        elif self.take("("):
            condition = self._any_of()
            self.expect(")")
        else:
            condition = self._comparison()
        self.skip_blanks()
        self._depth -= 1
        return condition

    def _comparison(self) -> Condition:
        left = self._operand()
        self.skip_blanks()
        operator = self.match(_OPERATOR)
        if operator is None:
            return Exists(left)
        self.skip_blanks()
        return FilterComparison(left, operator[0], self._operand())

    def _operand(self) -> Operand:
        if self.take("@"):
            return PathOperand(is_of_item=True, steps=self.steps(_FILTER_NAME))
        if self.take("$"):
            return PathOperand(is_of_item=False, steps=self.steps(_FILTER_NAME))
        pattern = self.match(_REGEX)
        if pattern is not None:
            return FilterPattern(pattern[1], "i" in pattern[2])
        return FilterConstant(self._constant())

    def _constant(self) -> StrictJson:
        if self.text[self.at : self.at + 1] in ("'", '"'):
            return self._quoted()
        if self.take("["):
            return self._array()
        word = self.match(_WORD)
        if word is not None:
            return _WORDS.get(word[0], word[0])
        number = self.match(_NUMBER)
        if number is None:
            raise self.problem("has no value")
        return float(number[0]) if set(number[0]) & set(".eE") else int(number[0])

    def _array(self) -> StrictJson:
        self._depth += 1
        if self._depth > _FILTER_DEPTH_MAX:
            raise self.problem("is nested too deep")
        self.skip_blanks()
        items: list[StrictJson] = []
        if not self.take("]"):
            items = self._list_of(self._constant)
            self.skip_blanks()
            self.expect("]")
        self._depth -= 1
        return items
