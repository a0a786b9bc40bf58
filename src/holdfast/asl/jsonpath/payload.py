"""Payload templates: Parameters, ResultSelector, ItemSelector, BatchInput, Assign.

    {"sku.$": "$.line.sku", "by": "$.is.text", "n.$": "States.ArrayLength($.lines)"}
    -> {"sku": "A-1", "by": "$.is.text", "n": 2}

Only fields whose names end with `.$` are evaluated, in objects and lists at any depth. A part
without such a field is returned unchanged, as the same object every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.asl.jsonata.values import EvaluationMoment, StrictJson
from holdfast.asl.jsonpath.jsonpath import Path, PathMissing, PathSyntaxError, compile_path
from holdfast.asl.jsonpath.scope import (
    INPUT_DATA,
    ConstantTemplate,
    PathScope,
    is_intrinsic,
    refuse,
    require_bounded,
)
from holdfast.asl.template import Template

if TYPE_CHECKING:
    from holdfast.asl.jsonpath.intrinsics import Intrinsic

__all__ = ["compile_payload", "variables_of"]

_DYNAMIC: Final = ".$"

_Fill: TypeAlias = Callable[[PathScope], StrictJson]


def compile_payload(value: StrictJson, source: Template = INPUT_DATA) -> Template:
    """Return the template of a field. `source` gives the value of `$` in it. Raises
    PathSyntaxError.
    """
    fill = _compile(value)
    return ConstantTemplate(value) if fill is None else _Payload(source, fill)


def variables_of(value: StrictJson) -> tuple[str, ...]:
    """Return the names of the variables that a payload template reads, in their order in the
    template.
    """
    match value:
        case dict():
            found = [name for key, item in value.items() for name in _variables(key, item)]
        case list():
            found = [name for item in value for name in variables_of(item)]
        case _:
            found = []
    return tuple(dict.fromkeys(found))


def _variables(key: str, item: StrictJson) -> tuple[str, ...]:
    if not key.endswith(_DYNAMIC) or not isinstance(item, str):
        return variables_of(item)
    paths = _intrinsic(item).paths if is_intrinsic(item) else (compile_path(item),)
    return tuple(path.variable for path in paths if path.variable is not None)


@dataclass(frozen=True, slots=True)
class _Payload:
    source: Template
    fill: _Fill

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        value = self.fill(PathScope(self.source.evaluate(bindings, moment), bindings, moment))
        require_bounded(value)
        return value


def _compile(value: StrictJson) -> _Fill | None:
    """Return the template; None when nothing in the value is evaluated."""
    match value:
        case dict():
            if any(key.endswith(_DYNAMIC) for key in value):
                return _object(value)
            fields = {key: _compile(item) for key, item in value.items()}
            return _object(value) if any(fields.values()) else None
        case list():
            items = [_compile(item) for item in value]
            return _array(value, items) if any(items) else None
        case _:
            return None


def _object(value: dict[str, StrictJson]) -> _Fill:
    fields: list[tuple[str, _Fill]] = []
    for key, item in value.items():
        if key.endswith(_DYNAMIC):
            fields.append((key.removesuffix(_DYNAMIC), _dynamic(key, item)))
        else:
            fields.append((key, _compile(item) or _constant(item)))
    return lambda scope: {key: fill(scope) for key, fill in fields}


def _array(value: list[StrictJson], items: list[_Fill | None]) -> _Fill:
    fills = [fill or _constant(item) for fill, item in zip(items, value, strict=True)]
    return lambda scope: [fill(scope) for fill in fills]


def _constant(value: StrictJson) -> _Fill:
    return lambda _: value


def _dynamic(key: str, item: StrictJson) -> _Fill:
    if not isinstance(item, str):
        raise PathSyntaxError(str(item), f"is the value of {key!r:.80}, and no text")
    if is_intrinsic(item):
        return _intrinsic(item).evaluate
    return _lookup(key, compile_path(item))


def _intrinsic(text: str) -> Intrinsic:
    from holdfast.asl.jsonpath.intrinsics import compile_intrinsic  # noqa: PLC0415  # counts in a cold start

    return compile_intrinsic(text)


def _lookup(key: str, path: Path) -> _Fill:
    find, is_input = path.find, path.is_input

    def fill(scope: PathScope) -> StrictJson:
        if is_input and scope.data is None:
            refuse("Unable to apply Path transformation to null or empty input.")
        try:
            return find(scope.data if is_input else scope.root_of(path))
        except PathMissing as missing:
            if missing.is_misuse:
                refuse(f"Invalid path '{path.text}' : {missing.reason}")
            refuse(
                f"The JSONPath '{path.text}' specified for the field '{key}' could not be found "
                f"in the input '{scope.text_of_root(path)}'"
            )

    return fill
