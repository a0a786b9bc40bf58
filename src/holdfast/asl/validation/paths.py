"""JSONPath in a definition: paths, reference paths, payload templates, names of variables.

The code of the language is imported when it is first needed: compiled workflows never need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.asl.validation.jsonata import check_template
from holdfast.asl.validation.report import FieldCheck, RuleScope, expected, json_kind
from holdfast.asl.validation.values import text_or_jsonata
from holdfast.limits import NAME_CHARACTERS_MAX

_DYNAMIC: Final = ".$"
_NO_REFERENCE: Final = "Value is not a Reference Path"


def path(scope: RuleScope, value: Any, location: str) -> None:
    """Check any JSONPath: in the input, in the context object or in a variable; or null."""
    if value is not None and not isinstance(value, str):
        expected(scope, location, "STRING", "NULL")
    elif value is not None and not is_path(value):
        scope.refuse(location, "Value must be a valid JSONPath.")


def reference(*, context: bool = False) -> FieldCheck:
    """Return a check for a path to exactly one place in the input or a variable. With `context`, a
    path in the context object (`$$.…`) is allowed, too.
    """

    def check(scope: RuleScope, value: Any, location: str) -> None:
        if not isinstance(value, str):
            return expected(scope, location, "STRING")
        return _refuse_no_reference(scope, _reference_problem(value, context=context), location)

    return check


def result_path(scope: RuleScope, value: Any, location: str) -> None:
    """Check a result path: one place in the input at which a value can be put, or null."""
    if value is not None and not isinstance(value, str):
        return expected(scope, location, "STRING", "NULL")
    if isinstance(value, str):
        problem = _reference_problem(value, context=False) or _put_problem(value)
        return _refuse_no_reference(scope, problem, location)
    return None


def _refuse_no_reference(scope: RuleScope, problem: str | None, location: str) -> None:
    if problem is not None:
        scope.refuse(location, f"{_NO_REFERENCE}{problem}")


def path_or_intrinsic(scope: RuleScope, value: Any, location: str) -> None:
    """Check a Fail's ErrorPath and CausePath."""
    if not isinstance(value, str):
        expected(scope, location, "STRING")
    elif not is_path(value) and not is_intrinsic(value):
        scope.refuse(location, "Value must be a valid JSONPath or a valid intrinsic function call")


def payload(scope: RuleScope, value: Any, location: str) -> None:
    """Check a payload template. AWS reports a problem inside of it at the template, not at the
    field.
    """
    for fields in _objects(value):
        for name, item in fields.items():
            if name.endswith(_DYNAMIC):
                _check_dynamic(scope, name, item, location)
                if name.removesuffix(_DYNAMIC) in fields:
                    scope.refuse(
                        location,
                        f"The field '{name}' and the field '{name.removesuffix(_DYNAMIC)}' "
                        "cannot be given together",
                    )
            elif scope.warns and isinstance(item, str) and is_path(item):
                advice = _use_instead(name, f"{name}{_DYNAMIC}")
                scope.warn(location, advice, "NO_DOLLAR")


def static_result(scope: RuleScope, value: Any, location: str) -> None:
    """Warn of fields in a Pass's Result that would have a meaning in its Parameters."""
    if not scope.warns:
        return
    for fields in _objects(value):
        for name, item in fields.items():
            if name.endswith(_DYNAMIC) and isinstance(item, str):
                scope.warn(
                    location,
                    f"The value of '{name}' will not evaluate as a JSONPath or Intrinsic Function "
                    "at runtime. Instead of 'Result', use 'Parameters' to evaluate it as a "
                    "JSONPath or Intrinsic Function at runtime.",
                    "PASS_RESULT_IS_STATIC",
                )


def text_beside_path(name: str) -> FieldCheck:
    """Return a check for a text that has a twin for paths: `Error` has `ErrorPath`."""

    def check(scope: RuleScope, value: Any, location: str) -> None:
        text_or_jsonata(scope, value, location)
        if scope.warns and not scope.is_jsonata and isinstance(value, str) and is_path(value):
            scope.warn(location, _use_instead(name, f"{name}Path"), "NO_PATH")

    return check


def _use_instead(name: str, better: str) -> str:
    return (
        f"The value of '{name}' looks like a JSONPath. Instead of '{name}', use '{better}' to "
        "evaluate it as a JSONPath at runtime."
    )


def payload_or_template(scope: RuleScope, value: Any, location: str) -> None:
    """Check a field that both languages have: ItemSelector, BatchInput."""
    (check_template if scope.is_jsonata else payload)(scope, value, location)


def _check_dynamic(scope: RuleScope, name: str, item: Any, location: str) -> None:
    if not isinstance(item, str):
        scope.refuse(
            location,
            f"The value for the field '{name}' must be a STRING that contains a JSONPath "
            f"but was a {json_kind(item)}",
        )
    elif not is_path(item) and not is_intrinsic(item):
        scope.refuse(
            location,
            f"The value for the field '{name}' must be a valid JSONPath or a valid intrinsic "
            "function call",
        )


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object in the value, outer ones first."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending += reversed(list(item.values()))
        elif isinstance(item, list):
            pending += reversed(item)


def assign(scope: RuleScope, value: Any, location: str) -> None:
    """Check variables by name, in the language of the state."""
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    for name in value:
        _check_variable(scope, name if scope.is_jsonata else name.removesuffix(_DYNAMIC), location)
    return (check_template if scope.is_jsonata else payload)(scope, value, location)


def _check_variable(scope: RuleScope, name: str, location: str) -> None:
    """Check the name of a variable: a Unicode identifier of at most 80 characters (AWS's page on
    variables).
    """
    problem = None
    if name == "states":
        message = "Cannot assign to reserved variable '$states'."
        return scope.refuse(location, message, "RESERVED_VARIABLE_NAME")
    if not name.isidentifier():
        problem = "the variable name contains invalid characters."
    elif len(name) > NAME_CHARACTERS_MAX:
        problem = f"the variable name exceeds {NAME_CHARACTERS_MAX} characters."
    if problem is not None:
        message = f"Invalid variable name '{name}': {problem}"
        scope.refuse(location, message, "INVALID_VARIABLE_NAME")
    return None


def is_path(text: str) -> bool:
    from holdfast.asl.jsonpath.jsonpath import PathSyntaxError, compile_path  # noqa: PLC0415

    try:
        compile_path(text)
    except PathSyntaxError:
        return False
    return True


def is_intrinsic(text: str) -> bool:
    from holdfast.asl.jsonpath.intrinsics import compile_intrinsic  # noqa: PLC0415
    from holdfast.asl.jsonpath.jsonpath import PathSyntaxError  # noqa: PLC0415

    try:
        compile_intrinsic(text)
    except PathSyntaxError:
        return False
    return True


def _reference_problem(text: str, *, context: bool) -> str | None:
    """Return the end of the sentence that refuses the path; None for a valid reference path."""
    if not text.startswith("$"):
        return ": Reference path didn't start with '$'"
    from holdfast.asl.jsonpath.jsonpath import PathSyntaxError, compile_path  # noqa: PLC0415

    try:
        found = compile_path(text)
    except PathSyntaxError as error:
        return f": {error}"
    return None if found.is_definite and (context or not found.is_context) else ""


def _put_problem(text: str) -> str | None:
    from holdfast.asl.jsonpath.jsonpath import PathSyntaxError, compile_reference  # noqa: PLC0415

    try:
        compile_reference(text)
    except PathSyntaxError:
        return ""
    return None
