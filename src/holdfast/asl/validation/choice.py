"""Choice rules: comparisons in JSONPath, conditions in JSONata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.asl.validation import paths, values
from holdfast.asl.validation.report import (
    FieldCheck,
    FieldRule,
    ObjectShape,
    RuleScope,
    expected,
    refuse_none,
    refuse_several,
)

_NUMBER_TYPE: Final = ("NUMBER",)
_SELECTORS: Final = ("And", "Or", "Not", "Variable", "Condition")


def _number(scope: RuleScope, value: Any, location: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        expected(scope, location, *_NUMBER_TYPE)


_ORDERS: Final = ("Equals", "LessThan", "GreaterThan", "LessThanEquals", "GreaterThanEquals")
_COMPARED: Final[Mapping[str, tuple[FieldCheck, tuple[str, ...]]]] = {
    "String": (values.text, _ORDERS),
    "Numeric": (_number, _ORDERS),
    "Boolean": (values.boolean, ("Equals",)),
    "Timestamp": (values.timestamp, _ORDERS),
}
_REFERENCE: Final = paths.reference(context=True)


def _operators() -> dict[str, FieldCheck]:
    found: dict[str, FieldCheck] = {}
    for kind, (check, orders) in _COMPARED.items():
        for order in orders:
            found[f"{kind}{order}"] = check
            found[f"{kind}{order}Path"] = _REFERENCE
    found["StringMatches"] = values.text
    for kind in ("Null", "Present", "Numeric", "String", "Boolean", "Timestamp"):
        found[f"Is{kind}"] = values.boolean
    return found


OPERATORS: Final = _operators()


def check_rule(scope: RuleScope, rule: Any, location: str) -> None:
    """Check one rule of Choices."""
    _check(scope, rule, location, _TOP)


def _inner_rule(scope: RuleScope, rule: Any, location: str) -> None:
    """Check a rule inside of And, Or or Not: it compares, and has no Next."""
    _check(scope, rule, location, _INNER)


def _check(scope: RuleScope, rule: Any, location: str, shape: ObjectShape) -> None:
    if not isinstance(rule, dict):
        return expected(scope, location, "OBJECT")
    shape.check(scope, rule, location)
    selectors = [name for name in _SELECTORS if name in rule]
    if len(selectors) != 1:
        names = ", ".join(_SELECTORS)
        scope.refuse(location, f"The object must have only one of the following fields, [{names}]")
    operators = [name for name in OPERATORS if name in rule]
    if len(operators) > 1:
        refuse_several(scope, operators, location)
    elif not operators and selectors == ["Variable"] and not scope.is_jsonata:
        refuse_none(scope, OPERATORS, location)
    return None


_COMPARISON: Final[Mapping[str, FieldRule]] = {
    "And": FieldRule(values.list_of(_inner_rule), "JSONPath"),
    "Or": FieldRule(values.list_of(_inner_rule), "JSONPath"),
    "Not": FieldRule(_inner_rule, "JSONPath"),
    "Variable": FieldRule(_REFERENCE, "JSONPath"),
    **{name: FieldRule(check, "JSONPath") for name, check in OPERATORS.items()},
    "Comment": FieldRule(values.text),
}
_INNER: Final = ObjectShape(_COMPARISON)
_TOP: Final = ObjectShape(
    {
        **_COMPARISON,
        "Condition": FieldRule(values.flag_or_jsonata, "JSONata"),
        "Next": FieldRule(values.text),
        "Assign": FieldRule(paths.assign),
        "Output": FieldRule(values.template, "JSONata"),
    },
    required=("Next",),
)
