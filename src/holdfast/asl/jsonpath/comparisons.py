"""Choice rules: `{"Variable": "$.n", "NumericLessThan": 3}`, And, Or, Not.

If a value has another type than the operator needs, the comparison is false and no error. A path to
a missing value is an error, in `Variable` and in the other side of a `…Path` operator; only
IsPresent allows it:

    Invalid path '$.n': The choice state's condition path references an invalid value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from holdfast.asl.jsonata.values import EvaluationMoment, StrictJson
from holdfast.asl.jsonpath.jsonpath import Path, PathMissing, PathSyntaxError, compile_path
from holdfast.asl.jsonpath.scope import INPUT_DATA, PathScope, refuse
from holdfast.asl.template import Template
from holdfast.asl.timestamps import nanos_of

__all__ = ["compile_rule"]

_PATH: Final = "Path"
_NO_OPERATORS: Final = frozenset({"Variable", "Next", "Comment", "Assign", "Output"})

_Test: TypeAlias = Callable[[PathScope], bool]
_Compare: TypeAlias = Callable[[Any, Any], bool]
_Measure: TypeAlias = Callable[[StrictJson], Any]


def compile_rule(rule: Mapping[str, Any], source: Template = INPUT_DATA) -> Template:
    """Return a template whose value is True or False. `source` gives the value of `$`.

    Raises PathSyntaxError, also for an operator that does not exist.
    """
    return _Rule(source, _compile(rule))


@dataclass(frozen=True, slots=True)
class _Rule:
    source: Template
    test: _Test

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        return self.test(PathScope(self.source.evaluate(bindings, moment), bindings, moment))


def _compile(rule: Mapping[str, Any]) -> _Test:
    if "And" in rule:
        tests = [_compile(inner) for inner in rule["And"]]
        return lambda scope: all(test(scope) for test in tests)
    if "Or" in rule:
        tests = [_compile(inner) for inner in rule["Or"]]
        return lambda scope: any(test(scope) for test in tests)
    if "Not" in rule:
        inner = _compile(rule["Not"])
        return lambda scope: not inner(scope)
    names = [name for name in rule if name not in _NO_OPERATORS]
    if len(names) != 1 or "Variable" not in rule:
        raise PathSyntaxError(str(names), "must be one operator on a Variable")
    return _comparison(compile_path(rule["Variable"]), names[0], rule[names[0]])


def _comparison(variable: Path, name: str, operand: Any) -> _Test:
    if name == "IsPresent":
        return lambda scope: _is_present(scope, variable) is operand
    if name in _KINDS:
        is_kind = _KINDS[name]
        return lambda scope: is_kind(_value(scope, variable)) is operand
    if name in _COMPARISONS:
        compare = _COMPARISONS[name](operand)
        return lambda scope: compare(_value(scope, variable))
    compare_with = _COMPARISONS.get(name.removesuffix(_PATH))
    if compare_with is None or name == "StringMatchesPath":
        raise PathSyntaxError(name, "is no operator")
    other = compile_path(operand)
    return lambda scope: compare_with(_value(scope, other))(_value(scope, variable))


def _value(scope: PathScope, path: Path) -> StrictJson:
    try:
        return scope.find(path)
    except PathMissing:
        refuse(
            f"Invalid path '{path.text}': "
            "The choice state's condition path references an invalid value."
        )


def _is_present(scope: PathScope, path: Path) -> bool:
    """Return True when the path leads to a value; a path that may lead to several must lead to at
    least one.
    """
    try:
        found = scope.find(path)
    except PathMissing:
        return False
    return path.is_definite or bool(found)


# -- kinds -----------------------------------------------------------------------------------------


def _is_number(value: StrictJson) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: StrictJson) -> StrictJson:
    return value if _is_number(value) else None


def _boolean(value: StrictJson) -> StrictJson:
    return value if isinstance(value, bool) else None


def _text(value: StrictJson) -> Any:
    """Return a key that orders texts as Java does: it compares UTF-16 units."""
    return value.encode("utf-16-be", "surrogatepass") if isinstance(value, str) else None


def _timestamp(value: StrictJson) -> int | None:
    return nanos_of(value) if isinstance(value, str) else None


_KINDS: Final[Mapping[str, Callable[[StrictJson], bool]]] = {
    "IsNull": lambda value: value is None,
    "IsNumeric": _is_number,
    "IsString": lambda value: isinstance(value, str),
    "IsBoolean": lambda value: isinstance(value, bool),
    "IsTimestamp": lambda value: _timestamp(value) is not None,
}


# -- comparisons -----------------------------------------------------------------------------------


def _measured(
    measure: _Measure, compare: _Compare
) -> Callable[[StrictJson], Callable[[StrictJson], bool]]:
    """Return a test that compares a measure of both sides. For a value of the wrong type the
    measure is None, which equals no other measure.
    """

    def with_operand(operand: StrictJson) -> Callable[[StrictJson], bool]:
        right = measure(operand)

        def test(value: StrictJson) -> bool:
            left = measure(value)
            return left is not None and right is not None and bool(compare(left, right))

        return test

    return with_operand


def _matches(pattern: StrictJson) -> Callable[[StrictJson], bool]:
    r"""Return a test for a pattern: `*` is any text, `\*` an asterisk, `\\` a backslash."""
    parts = _parts(pattern) if isinstance(pattern, str) else []

    def test(value: StrictJson) -> bool:
        if not isinstance(value, str) or not parts:
            return False
        first, *middle = parts
        if not middle:
            return value == first
        last = middle.pop()
        if not value.startswith(first) or len(value) < len(first) + len(last):
            return False
        at, end = len(first), len(value) - len(last)
        for part in middle:
            found = value.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return value.endswith(last)

    return test


def _parts(pattern: str) -> list[str]:
    """Return the texts between the asterisks: "a*\\*b" gives ["a", "*b"]."""
    parts, characters = [""], iter(pattern)
    for character in characters:
        if character == "*":
            parts.append("")
        elif character == "\\":
            parts[-1] += next(characters, "\\")
        else:
            parts[-1] += character
    return parts


_ORDERS: Final[Mapping[str, _Compare]] = {
    "Equals": operator.eq,
    "LessThan": operator.lt,
    "LessThanEquals": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEquals": operator.ge,
}
_MEASURES: Final[Mapping[str, _Measure]] = {
    "String": _text,
    "Numeric": _number,
    "Timestamp": _timestamp,
}
_COMPARISONS: Final[Mapping[str, Callable[[StrictJson], Callable[[StrictJson], bool]]]] = {
    **{
        f"{kind}{order}": _measured(measure, compare)
        for kind, measure in _MEASURES.items()
        for order, compare in _ORDERS.items()
    },
    "BooleanEquals": _measured(_boolean, operator.eq),
    "StringMatches": _matches,
}
