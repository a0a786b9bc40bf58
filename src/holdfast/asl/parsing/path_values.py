"""Fields whose value is a path: SecondsPath, ErrorPath, ToleratedFailureCountPath …

`asl/field_errors.py` has the rules of their error messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from holdfast.asl import error_names
from holdfast.asl.field_errors import FieldSource, negative
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
_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL: Final = re.compile(
    r"[+-]?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?"
)
_LONG_MAX: Final = 2**63 - 1


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
    origin: FieldSource

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        scope = PathScope(self.source.evaluate(bindings, moment), bindings, moment)
        return _require_text(self.origin, self.intrinsic.evaluate(scope))


def text_path(field: str, text: str, source: Template) -> Template:
    """Return the template of ErrorPath or CausePath, which may also be an intrinsic function.
    Raises PathSyntaxError.
    """
    origin = _origin(field, text)
    if is_intrinsic(text):
        from holdfast.asl.jsonpath.intrinsics import compile_intrinsic  # noqa: PLC0415  # for cold starts

        return _IntrinsicValue(compile_intrinsic(text), source, origin)
    path = compile_path(text)

    def missing(scope: PathScope, _: PathMissing) -> NoReturn:
        refuse(
            f"The JSONPath '{text}' specified for the field '{field}' could not be found in the "
            f"input '{scope.text_of_root(path)}'"
        )

    return PathValue(path, source, lambda value: _require_text(origin, value), missing)


def wait_seconds_path(text: str, source: Template) -> Template:
    """Return the template of a Wait's SecondsPath: a whole number of at least 0. Raises
    PathSyntaxError.
    """
    origin = FieldSource("Seconds", text)

    def accept(value: StrictJson) -> StrictJson:
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(origin.unparsable("cannot be parsed as a long value", value))
        if value < 0:
            refuse(origin.unparsable("references a negative value", value))
        return _require_possible(origin, value)

    return PathValue(compile_path(text), source, accept, _not_referenced("SecondsPath", text))


def wait_timestamp_path(text: str, source: Template) -> Template:
    """Return the template of a Wait's TimestampPath. Raises PathSyntaxError."""
    origin = FieldSource("Timestamp", text)

    def accept(value: StrictJson) -> StrictJson:
        if not isinstance(value, str) or nanos_of(value) is None:
            what = "does not reference a valid ISO-8601 extended offset date-time format string"
            refuse(origin.unparsable(what, value))
        return value

    return PathValue(compile_path(text), source, accept, _not_referenced("TimestampPath", text))


def task_seconds_path(field: str, text: str, source: Template) -> Template:
    """Return the template of TimeoutSecondsPath or HeartbeatSecondsPath. Raises PathSyntaxError."""
    origin = _origin(field, text)

    def accept(value: StrictJson) -> StrictJson:
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            refuse(origin.unparsable("cannot be parsed as a positive integer", value))
        return _require_possible(origin, value)

    return PathValue(compile_path(text), source, accept, _invalid_path(text))


def whole_number_path(field: str, text: str, source: Template) -> Template:
    """Return the template of MaxConcurrencyPath, MaxItemsPath, ToleratedFailureCountPath and
    others. A text of digits is accepted, too.

    Raises PathSyntaxError.
    """
    origin = _origin(field, text)

    def accept(value: StrictJson) -> StrictJson:
        number = _whole(value)
        if number is None:
            refuse(origin.misfit("integer", value))
        if number < 0 and field != _LEFT_TO_READER:
            refuse(negative(origin.field))
        return number

    return PathValue(compile_path(text), source, accept, _invalid_path(text))


def percentage_path(field: str, text: str, source: Template) -> Template:
    """Return the template of ToleratedFailurePercentagePath: a number, or a text that writes
    one.
    """
    origin = _origin(field, text)

    def accept(value: StrictJson) -> StrictJson:
        number = _decimal(value)
        if number is None:
            refuse(origin.misfit("float", value))
        if not 0 <= number <= _PERCENTAGE_MAX:
            refuse(f"{origin.field} must be between 0 and {_PERCENTAGE_MAX}.")
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


def _origin(field: str, text: str) -> FieldSource:
    return FieldSource(field.removesuffix("Path"), text)


def _require_text(origin: FieldSource, value: StrictJson) -> StrictJson:
    if not isinstance(value, str):
        refuse(origin.misfit("string", value))
    return value


def _require_possible(origin: FieldSource, seconds: int) -> int:
    if seconds > STATE_SECONDS_MAX:
        refuse(origin.unparsable("references too large a value", seconds))
    return seconds


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
            number = value
        case str() if _DIGITS.fullmatch(value):
            number = int(value)
        case _:
            return None
    return number if abs(number) <= _LONG_MAX else None


def _decimal(value: StrictJson) -> float | None:
    match value:
        case bool():
            return None
        case int() | float():
            return value
        case str() if _DECIMAL.fullmatch(value):
            return float(value)
        case _:
            return None
