"""The steps of a path that may lead to several values: from lists of nodes to lists of nodes, by
the rules of Jayway.

A step skips values of a type to which it cannot be applied. A deep scan (`..`) visits a node before
its members.
"""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, assert_never

from holdfast.asl.java_text import java_text
from holdfast.asl.jsonata.values import REGEX_SECONDS_MAX, StrictJson, deep_equal
from holdfast.asl.jsonpath.parse import (
    All,
    AnyOf,
    Condition,
    Descend,
    Exists,
    FilterComparison,
    FilterConstant,
    FilterPattern,
    FilterStep,
    Indexes,
    IndexStep,
    Merge,
    NamedChild,
    NamedChildren,
    Not,
    Operand,
    PathOperand,
    PathStep,
    Slice,
    Wildcard,
)

_NODES_MAX: Final = 1_000_000

_Order: TypeAlias = Callable[[Any, Any], bool]

_ABSENT: Final[Any] = object()


class PathBudgetError(Exception):
    """A path would take too long, such as `$..*..*..*`."""


class _Walk:
    """One evaluation of a path: the whole document, and the remaining budget."""

    __slots__ = ("document", "nodes_left", "regex_seconds_left")

    def __init__(self, document: StrictJson) -> None:
        self.document = document
        self.nodes_left = _NODES_MAX
        self.regex_seconds_left = REGEX_SECONDS_MAX

    def visit(self, count: int) -> None:
        self.nodes_left -= count
        if self.nodes_left < 0:
            raise PathBudgetError(f"The path leads to more than {_NODES_MAX:,} values")

    def is_full_match(self, compiled: Any, text: str) -> bool:
        begun = time.perf_counter()
        try:
            return compiled.fullmatch(text, timeout=self.regex_seconds_left) is not None
        except TimeoutError:
            reason = "The path spends too long in a regular expression"
            raise PathBudgetError(reason) from None
        finally:
            spent = time.perf_counter() - begun
            # Keep the time above zero, because `regex` would take zero for no time-out.
            self.regex_seconds_left = max(self.regex_seconds_left - spent, 1e-6)


#: Recursive calls of a group, which Java does not have. In `regex` they could use up the memory,
#: and its time-out would not prevent that.
_NOT_JAVA: Final = re.compile(r"\(\?(?:R|&|P>|[-+]?\d)")
#: A function that returns the nodes to which a step leads from a node.
_Select: TypeAlias = Callable[[StrictJson, _Walk], Iterable[StrictJson]]
_Test: TypeAlias = Callable[[StrictJson, _Walk], bool]
_Read: TypeAlias = Callable[[StrictJson, _Walk], Any]


def compile_steps(steps: Sequence[PathStep]) -> Callable[[StrictJson], list[StrictJson]]:
    """Return a function for the values to which the steps lead from the root. It raises
    PathBudgetError.
    """
    select = _chain(steps)
    return lambda document: list(select(document, _Walk(document)))


def _chain(steps: Sequence[PathStep]) -> _Select:
    selects = tuple(_select(step) for step in steps)

    def select(node: StrictJson, walk: _Walk) -> list[StrictJson]:
        nodes = [node]
        for step in selects:
            found: list[StrictJson] = []
            for here in nodes:
                found.extend(step(here, walk))
            walk.visit(len(found))
            nodes = found
        return nodes

    return select


def _select(step: PathStep) -> _Select:
    match step:
        case NamedChild(name):
            return lambda node, _: [node[name]] if isinstance(node, dict) and name in node else ()
        case NamedChildren(names):
            return lambda node, _: _each(node, names)
        case Merge(names):
            return lambda node, _: _merged(node, names)
        case IndexStep(index):
            return lambda node, _: _at(node, (index,))
        case Indexes(indexes):
            return lambda node, _: _at(node, indexes)
        case Slice(start, end):
            return lambda node, _: _sliced(node, start, end)
        case Wildcard():
            return lambda node, _: _children(node)
        case FilterStep(condition):
            return _filter(condition)
        case Descend(FilterStep(condition)):
            return _descend(_accepted(condition))
        case Descend(Merge(names)):
            return _descend(lambda node, _: _merged(node, names) if _has(node, names) else ())
        case Descend(inner):
            return _descend(_select(inner))
        case _:
            assert_never(step)


def _each(node: StrictJson, names: tuple[str, ...]) -> Iterable[StrictJson]:
    return [node[name] for name in names if name in node] if isinstance(node, dict) else ()


def _merged(node: StrictJson, names: tuple[str, ...]) -> Iterable[StrictJson]:
    if not isinstance(node, dict):
        return ()
    return [{name: node[name] for name in names if name in node}]


def _has(node: StrictJson, names: tuple[str, ...]) -> bool:
    return isinstance(node, dict) and all(name in node for name in names)


def _sliced(node: StrictJson, start: int | None, end: int | None) -> Iterable[StrictJson]:
    """Return the items of a slice. In a slice with two bounds a negative bound does not count from
    the end: [1:-1] is empty.
    """
    if not isinstance(node, list):
        return ()
    if start is None or end is None:
        return node[start:end]
    return _at(node, range(max(start, -len(node)), min(end, len(node))))


def _at(node: StrictJson, indexes: Sequence[int]) -> Iterable[StrictJson]:
    if not isinstance(node, list):
        return ()
    return [node[index] for index in indexes if -len(node) <= index < len(node)]


def _children(node: StrictJson) -> Iterable[StrictJson]:
    match node:
        case dict():
            return node.values()
        case list():
            return node
        case _:
            return ()


def _descend(select: _Select) -> _Select:
    def descend(node: StrictJson, walk: _Walk) -> Iterator[StrictJson]:
        open_nodes = [node]
        while open_nodes:
            here = open_nodes.pop()
            walk.visit(1)
            yield from select(here, walk)
            open_nodes.extend(reversed(list(_children(here))))

    return descend


# -- filters ---------------------------------------------------------------------------------------


def _filter(condition: Condition) -> _Select:
    test = _test(condition)

    def select(node: StrictJson, walk: _Walk) -> Iterable[StrictJson]:
        match node:
            case list():
                walk.visit(len(node))
                return [item for item in node if test(item, walk)]
            case dict():
                return [node] if test(node, walk) else ()
            case _:
                return ()

    return select


def _accepted(condition: Condition) -> _Select:
    """Return the filter. A deep scan tests an object once, at its own place, and not again as an
    item of its array.
    """
    test = _test(condition)
    return lambda node, walk: [node] if isinstance(node, dict) and test(node, walk) else ()


def _test(condition: Condition) -> _Test:
    match condition:
        case FilterComparison(left, sign, right):
            return _comparison(left, sign, right)
        case Exists(operand):
            read = _reader(operand)
            return lambda item, walk: read(item, walk) is not _ABSENT
        case Not(inner):
            test = _test(inner)
            return lambda item, walk: not test(item, walk)
        case All(conditions):
            tests = tuple(map(_test, conditions))
            return lambda item, walk: all(test(item, walk) for test in tests)
        case AnyOf(conditions):
            tests = tuple(map(_test, conditions))
            return lambda item, walk: any(test(item, walk) for test in tests)
        case _:
            assert_never(condition)


def _reader(operand: Operand) -> _Read:
    match operand:
        case FilterConstant(value):
            return lambda _, __: value
        case FilterPattern():
            return lambda _, __: operand
        case PathOperand(is_of_item, steps):
            return _lookup(_chain(steps), is_of_item, _is_single(steps))
        case _:
            assert_never(operand)


def _is_single(steps: tuple[PathStep, ...]) -> bool:
    return all(isinstance(step, NamedChild | IndexStep) for step in steps)


def _lookup(select: _Select, is_of_item: bool, is_single: bool) -> _Read:
    def read(item: StrictJson, walk: _Walk) -> Any:
        found = list(select(item if is_of_item else walk.document, walk))
        if not is_single:
            return found
        return found[0] if found else _ABSENT

    return read


def _comparison(left: Operand, sign: str, right: Operand) -> _Test:
    if isinstance(right, FilterPattern) != (sign == "=~"):
        return lambda _, __: False
    read_left = _reader(left)
    if isinstance(right, FilterPattern):
        return _matching(read_left, right)
    read_right, compare = _reader(right), _COMPARISONS[sign]
    return lambda item, walk: compare(read_left(item, walk), read_right(item, walk))


def _matching(read: _Read, pattern: FilterPattern) -> _Test:
    """Return True when the pattern matches the whole text, as in Java's `matches`. The regex engine
    has a time-out.
    """
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415  # slow to import, and rare

    if _NOT_JAVA.search(pattern.source):
        return lambda _, __: False
    try:
        compiled = regex.compile(pattern.source, regex.IGNORECASE if pattern.is_case_ignored else 0)
    except (regex.error, RecursionError, OverflowError):
        return lambda _, __: False

    def matches(item: StrictJson, walk: _Walk) -> bool:
        text = read(item, walk)
        return isinstance(text, str) and walk.is_full_match(compiled, text)

    return matches


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(left: Any, right: Any) -> bool:
    """Return True when both are equal. A number equals the text that writes it; otherwise values of
    different types are never equal.
    """
    if _is_number(left) and _is_number(right):
        return bool(left == right)
    if _is_number(left) and isinstance(right, str):
        return java_text(left) == right
    if _is_number(right) and isinstance(left, str):
        return java_text(right) == left
    return left is not _ABSENT and type(left) is type(right) and deep_equal(left, right)


def _ordered(compare: _Order) -> _Order:
    def test(left: Any, right: Any) -> bool:
        is_comparable = (_is_number(left) and _is_number(right)) or (
            isinstance(left, str) and isinstance(right, str)
        )
        return is_comparable and compare(left, right)

    return test


def _is_in(left: Any, right: Any) -> bool:
    return isinstance(right, list) and any(_equal(left, item) for item in right)


_COMPARISONS: Final[Mapping[str, _Order]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "in": _is_in,
    "nin": lambda left, right: not _is_in(left, right),
}
