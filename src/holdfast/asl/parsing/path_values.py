"""Fields whose value is a path: SecondsPath, ErrorPath, ToleratedFailureCountPath …

Each has error messages of its own, which were taken from recordings of AWS unless noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from holdfast.asl import error_names
from holdfast.asl.java_text import shown
from holdfast.asl.jsonata.values import EvaluationMoment, StrictJson
from holdfast.asl.jsonpath.jsonpath import Path, PathMissing, compile_path
from holdfast.asl.jsonpath.scope import PathScope, is_intrinsic, refuse, require_bounded
from holdfast.asl.template import StateError, Template
from holdfast.asl.timestamps import nanos_of
from holdfast.limits import STATE_SECONDS_MAX

if TYPE_CHECKING:
    from holdfast.asl.jsonpath.intrinsics import Intrinsic

_Accept: TypeAlias = Callable[[StrictJson], StrictJson]
_Missing: TypeAlias = Callable[[PathScope, PathMissing], NoReturn]

_PERCENTAGE_MAX: Final = 100
# A negative MaxItemsPath is accepted here, because the code that reads the items has its own
# message for it.
_LEFT_TO_READER: Final = "MaxItemsPath"
_DIGITS: Final = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class PathValue:
    """A field with a path. `accept` converts the value at the path to the field's value, or raises
    StateError.
    """

    path: Path
    source: Template
    accept: _Accept
    missing: _Missing

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        scope = PathScope(self.source.evaluate(bindings, moment), bindings, moment)
        try:
            value = scope.find(self.path)
        except PathMissing as missing:
            self.missing(scope, missing)
        return self.accept(value)


@dataclass(frozen=True, slots=True)
class _IntrinsicValue:
    intrinsic: Intrinsic
    source: Template

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        scope = PathScope(self.source.evaluate(bindings, moment), bindings, moment)
        return self.intrinsic.evaluate(scope)


def text_path(field: str, text: str, source: Template) -> Template:
    """Return the template of ErrorPath or CausePath, which may also be an intrinsic function.
    Raises PathSyntaxError.
    """
    if is_intrinsic(text):
        from holdfast.asl.jsonpath.intrinsics import compile_intrinsic  # noqa: PLC0415  # for cold starts

        return _IntrinsicValue(compile_intrinsic(text), source)
    path = compile_path(text)

    def missing(scope: PathScope, _: PathMissing) -> NoReturn:
        refuse(
            f"The JSONPath '{text}' specified for the field '{field}' could not be found in the "
            f"input '{scope.text_of_root(path)}'"
        )

    return PathValue(path, source, lambda value: value, missing)


def wait_seconds_path(text: str, source: Template) -> Template:
    """Return the template of a Wait's SecondsPath: a whole number of at least 0. Raises
    PathSyntaxError.
    """

    def accept(value: StrictJson) -> StrictJson:
        described = f"{text} == {shown(value)}"
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(f"The SecondsPath parameter cannot be parsed as a long value: {described}")
        if value < 0:  # this message is not from a recording
            refuse(f"The SecondsPath parameter references a negative value: {described}")
        if value > STATE_SECONDS_MAX:  # this message is not from a recording
            refuse(f"The SecondsPath parameter references too large a value: {described}")
        return value

    return PathValue(compile_path(text), source, accept, _not_referenced("SecondsPath", text))


def wait_timestamp_path(text: str, source: Template) -> Template:
    """Return the template of a Wait's TimestampPath. Raises PathSyntaxError."""

    def accept(value: StrictJson) -> StrictJson:
        if not isinstance(value, str) or nanos_of(value) is None:
            found = value if isinstance(value, str) else shown(value)
            refuse(
                "The TimestampPath parameter does not reference a valid ISO-8601 extended offset "
                f"date-time format string: {text} == {found}"
            )
        return value

    return PathValue(compile_path(text), source, accept, _not_referenced("TimestampPath", text))


def task_seconds_path(field: str, text: str, source: Template) -> Template:
    """Return the template of TimeoutSecondsPath or HeartbeatSecondsPath. Raises PathSyntaxError."""

    def accept(value: StrictJson) -> StrictJson:
        described = f"{text} == {shown(value)}"
        # No recording of AWS has this error, so the message is written by us.
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            refuse(f"The {field} parameter cannot be parsed as a positive integer: {described}")
        if value > STATE_SECONDS_MAX:  # this message is not from a recording
            refuse(f"The {field} parameter references too large a value: {described}")
        return value

    return PathValue(compile_path(text), source, accept, _invalid_path(text))


def whole_number_path(field: str, text: str, source: Template) -> Template:
    """Return the template of MaxConcurrencyPath, MaxItemsPath, ToleratedFailureCountPath and
    others. A text of digits is accepted, too.

    Raises PathSyntaxError.
    """

    def accept(value: StrictJson) -> StrictJson:
        number = _whole(value)
        if number is None:
            refuse(
                f"The {field} field refers to value {shown(value)} "
                f"which is not a valid integer: {text}"
            )
        if number < 0 and field != _LEFT_TO_READER:
            refuse(f"{field.removesuffix('Path')} cannot be negative.")
        return number

    return PathValue(compile_path(text), source, accept, _invalid_path(text))


def percentage_path(field: str, text: str, source: Template) -> Template:
    """Return the template of ToleratedFailurePercentagePath: a number, or a text that writes
    one.
    """

    def accept(value: StrictJson) -> StrictJson:
        number = _decimal(value)
        if number is None:
            refuse(
                f"The {field} field refers to value {shown(value)} "
                f"which is not a valid float: {text}"
            )
        if not 0 <= number <= _PERCENTAGE_MAX:
            refuse(f"{field.removesuffix('Path')} must be between 0 and {_PERCENTAGE_MAX}.")
        return number

    return PathValue(compile_path(text), source, accept, _invalid_path(text))


def items_path(text: str, source: Template, *, takes_objects: bool = False) -> Template:
    """Return the template of a Map's ItemsPath, which is `$` when absent: a reference to an array.
    Raises PathSyntaxError.

    A distributed Map accepts objects, too (AWS docs; no recording shows it).
    """
    path = compile_path(text)
    shown = f"${text.removeprefix('$$')}" if path.is_context else text

    def accept(value: StrictJson) -> StrictJson:
        if not isinstance(value, list) and not (takes_objects and isinstance(value, dict)):
            cause = f'Reference path "{shown}" must point to array.'
            raise StateError(error_names.RUNTIME, cause, is_whole=True)
        require_bounded(value)
        return value

    def missing(scope: PathScope, _: PathMissing) -> NoReturn:
        step = path.keys[-1] if path.keys else text
        cause = f'Unable to apply step "{step}" to input {scope.text_of_root(path)}'
        raise StateError(error_names.REFERENCE_PATH_CONFLICT, cause, is_whole=True)

    return PathValue(path, source, accept, missing)


def _not_referenced(field: str, text: str) -> _Missing:
    def missing(_: PathScope, __: PathMissing) -> NoReturn:
        refuse(f"The {field} parameter does not reference an input value: {text}")

    return missing


def _invalid_path(text: str) -> _Missing:
    def missing(_: PathScope, found: PathMissing) -> NoReturn:
        refuse(f"Invalid path '{text}' : {found.reason}")

    return missing


def _whole(value: StrictJson) -> int | None:
    match value:
        case bool():
            return None
        case int():
            return value
        case str():
            return int(value) if _DIGITS.fullmatch(value) else None
        case _:
            return None


def _decimal(value: StrictJson) -> float | None:
    match value:
        case bool():
            return None
        case int() | float():
            return value
        case str():
            try:
                return float(value)
            except ValueError:
                return None
        case _:
            return None
