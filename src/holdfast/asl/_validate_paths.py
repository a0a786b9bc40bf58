"""JSONPath in a definition: paths, reference paths, payload templates, variables' names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.asl._validate_jsonata import check_template
from holdfast.asl._validate_report import Check, Scope, expected, json_kind
from holdfast.asl.intrinsics import compile_intrinsic
from holdfast.asl.jsonpath import PathSyntaxError, compile_path
from holdfast.limits import NAME_CHARACTERS_MAX

_DYNAMIC: Final = ".$"


def path(*, may_be_null: bool = False) -> Check:
    """Any JSONPath: of the input, of the context object, of a variable."""

    def check(scope: Scope, value: Any, location: str) -> None:
        if value is None and may_be_null:
            return
        if not isinstance(value, str):
            expected(scope, location, *(("STRING", "NULL") if may_be_null else ("STRING",)))
        elif not is_path(value):
            scope.refuse(location, "Value must be a valid JSONPath.")

    return check


def reference(*, may_be_null: bool = False, context: bool = False, variable: bool = True) -> Check:
    """A path to exactly one place. `context`: `$$.…` will do; `variable`: `$name.…` will."""

    def check(scope: Scope, value: Any, location: str) -> None:
        if value is None and may_be_null:
            return
        if not isinstance(value, str):
            return expected(scope, location, *(("STRING", "NULL") if may_be_null else ("STRING",)))
        problem = _reference_problem(value, context=context, variable=variable)
        if problem is not None:
            scope.refuse(location, f"Value is not a Reference Path{problem}")

    return check


def path_or_intrinsic(scope: Scope, value: Any, location: str) -> None:
    """A Fail's ErrorPath and CausePath."""
    if not isinstance(value, str):
        expected(scope, location, "STRING")
    elif not is_path(value) and not is_intrinsic(value):
        scope.refuse(
            location, "Value must be a valid JSONPath or a valid intrinsic function call"
        )


def payload(scope: Scope, value: Any, location: str) -> None:
    """A payload template. AWS reports what is wrong in it at the template, not at the field."""
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


def payload_or_template(scope: Scope, value: Any, location: str) -> None:
    """A field that both languages have: ItemSelector, BatchInput."""
    (check_template if scope.is_jsonata else payload)(scope, value, location)


def _check_dynamic(scope: Scope, name: str, item: Any, location: str) -> None:
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
    """Every object in the value, outer ones first."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending += reversed(list(item.values()))
        elif isinstance(item, list):
            pending += reversed(item)


def assign(scope: Scope, value: Any, location: str) -> None:
    """Variables by name, in the state's language."""
    if not isinstance(value, dict):
        return expected(scope, location, "OBJECT")
    for name in value:
        _check_variable(scope, name if scope.is_jsonata else name.removesuffix(_DYNAMIC), location)
    return (check_template if scope.is_jsonata else payload)(scope, value, location)


def _check_variable(scope: Scope, name: str, location: str) -> None:
    """A Unicode identifier of at most 80 characters; see AWS's page on variables."""
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
    try:
        compile_path(text)
    except PathSyntaxError:
        return False
    return True


def is_intrinsic(text: str) -> bool:
    try:
        compile_intrinsic(text)
    except PathSyntaxError:
        return False
    return True


def _reference_problem(text: str, *, context: bool, variable: bool) -> str | None:
    """What follows "Value is not a Reference Path"; None when it is one."""
    if not text.startswith("$"):
        return ": Reference path didn't start with '$'"
    try:
        found = compile_path(text)
    except PathSyntaxError as error:
        return f": {error}"
    is_allowed = (
        found.is_definite
        and (context or not found.is_context)
        and (variable or found.variable is None)
    )
    return None if is_allowed else ""
