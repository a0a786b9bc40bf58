"""Templates: the JSON of a state's field, in which a text `{% … %}` is a JSONata expression.

`{"sku": "{% $line.sku %}", "qty": 1}` gives `{"sku": "A-1", "qty": 1}`. A template is compiled
once. A part without an expression is returned unchanged, as the same object every time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, Protocol

from holdfast.asl import error_names
from holdfast.asl.jsonata.jsonata import (
    BUDGET_CODE,
    UNDEFINED,
    EvaluationMoment,
    JsonataError,
    ParsedExpression,
    StrictJson,
    compile_expression,
)
from holdfast.asl.jsonata.values import require_bounded
from holdfast.lazy_dataclass import dataclass

_FIELDS_UNBOUNDED_MAX: Final = 8
_OPEN: Final = "{%"
_CLOSE: Final = "%}"
#: The fields whose value must have this type. AWS reports a value of another type as an error, and
#: numbers are then checked further where they are used.
_EXPECTED: Final[Mapping[str, str]] = {
    "Condition": "boolean",
    "Items": "array",
    "Seconds": "number",
    "Timestamp": "string",
    "TimeoutSeconds": "number",
    "HeartbeatSeconds": "number",
    "MaxConcurrency": "number",
    "ToleratedFailureCount": "number",
    "ToleratedFailurePercentage": "number",
    "ItemReader/ReaderConfig/MaxItems": "number",
    "ItemBatcher/MaxItemsPerBatch": "number",
    "ItemBatcher/MaxInputBytesPerBatch": "number",
    "ItemReader/Arguments": "object",
    "ResultWriter/Arguments": "object",
    "Credentials": "object",
    "Credentials/RoleArn": "string",
    "Error": "string",
    "Cause": "string",
}
# An error names a field by its path in the state: "Seconds", "Choices[0]/Condition",
# "ItemReader/Arguments". The lookbehind is for a state that has such a name.
_FIELD: Final = re.compile(
    r"(?:(Choices|Catch|Retry)/(\d+)/|(?<!States/)(ItemReader|ItemBatcher|ResultWriter)/)?([^/]+)\Z"
)
_RULE: Final = re.compile(r"(?:Choices|Catch|Retry)\[\d+\]/")


class StateError(Exception):
    """A field of a state that could not be evaluated. `error` is AWS's error name for it.

    `cause` is AWS's sentence. The caller, which knows the state, puts "An error occurred while
    executing the state …" before it, unless `is_whole`.
    """

    def __init__(self, error: str, cause: str, *, is_whole: bool = False) -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause
        self.is_whole = is_whole


class EvaluationError(StateError):
    """The failure of a JSONata field: States.QueryEvaluationError, with an event of its own in the
    history.

    `location` is the field as AWS names it ("Arguments/lines"). `is_late`: the field had a value,
    and the use of that value failed.
    """

    def __init__(self, location: str, cause: str, *, is_late: bool = False) -> None:
        super().__init__(error_names.QUERY_EVALUATION_ERROR, cause)
        self.location = location
        self.is_late = is_late


class Template(Protocol):
    """A compiled field. `bindings` are the variables by name, and under `states` (never the name of
    a variable) {"input", "context", "result"?, "errorOutput"?}, which JSONPath fields also read.
    """

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        """Return the field's value. Raises StateError; for JSONata EvaluationError, also for an
        undefined value.
        """
        ...


def is_expression(text: str) -> bool:
    return text.startswith(_OPEN) and text.endswith(_CLOSE) and len(text) >= len(_OPEN + _CLOSE)


def compile_template(value: StrictJson, where: str, *, takes_objects: bool = False) -> Template:
    """Return the template of a field. Raises JsonataError when an expression cannot be parsed.

    `where` is the field's path in the definition, such as "/States/ship/Arguments". With
    `takes_objects` an object is accepted, besides the type that such a field must have.
    """
    location = _location(where)
    if isinstance(value, str) and is_expression(value):
        return _field(value, location, takes_objects=takes_objects)
    template = _compile(value, location)
    if template is None:
        return _Literal(value)
    return template if _fields_of(value) <= _FIELDS_UNBOUNDED_MAX else _Bounded(location, template)


def _fields_of(value: StrictJson) -> int:
    match value:
        case str():
            return int(is_expression(value))
        case dict():
            return sum(map(_fields_of, value.values()))
        case list():
            return sum(map(_fields_of, value))
        case _:
            return 0


def _field(value: str, location: str, *, takes_objects: bool = False) -> Template:
    expression = compile_expression(value[len(_OPEN) : -len(_CLOSE)].strip())
    expected = _EXPECTED.get(_RULE.sub("", location))
    types = () if expected is None else (expected, "object") if takes_objects else (expected,)
    return _Field(location, expression, types, makes=not expression.is_lookup)


def _location(where: str) -> str:
    field = _FIELD.search(where)
    assert field is not None, where
    rules, index, holder, name = field.groups()
    if rules:
        return f"{rules}[{index}]/{name}"
    return f"{holder}/{name}" if holder else name


def _compile(value: StrictJson, location: str) -> Template | None:
    """Return a template; None when the value contains no expression."""
    match value:
        case str() if is_expression(value):
            return _field(value, location)
        case dict():
            fields = {key: _compile(item, f"{location}/{key}") for key, item in value.items()}
            if not any(fields.values()):
                return None
            return _Object(
                tuple((key, fields[key] or _Literal(item)) for key, item in value.items())
            )
        case list():
            items = [_compile(item, f"{location}[{at}]") for at, item in enumerate(value)]
            if not any(items):
                return None
            pairs = zip(items, value, strict=True)
            return _Array(tuple(item or _Literal(literal) for item, literal in pairs))
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _Literal:
    value: StrictJson

    def evaluate(self, *_: object) -> StrictJson:
        return self.value


@dataclass(frozen=True, slots=True)
class _Field:
    """One field. `types` are JSONata's names of the types that the field may have; none: any type.

    `makes`: the expression creates a value, which may be much larger than the data that it reads.
    """

    location: str
    expression: ParsedExpression
    types: tuple[str, ...]
    makes: bool

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        try:
            result = self.expression.evaluate(bindings, moment)
        except JsonataError as error:
            raise EvaluationError(self.location, self._sentence(_thrown(error))) from None
        if result is UNDEFINED:
            raise EvaluationError(self.location, self._sentence("returned nothing (undefined)."))
        if self.types and type_name(result) not in self.types:
            raise EvaluationError(self.location, self._sentence(_misfit(self.types[0], result)))
        if self.makes and isinstance(result, dict | list):
            try:
                require_bounded(result)
            except JsonataError as error:
                raise EvaluationError(self.location, self._sentence(_thrown(error))) from None
        return result

    def _sentence(self, what: str) -> str:
        return (
            f"The JSONata expression '{self.expression.text}' "
            f"specified for the field '{self.location}' {what}"
        )


def type_name(value: StrictJson) -> str:
    """Return the type of a value as JSONata calls it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _misfit(expected: str, found: StrictJson) -> str:
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=False)
    return (
        f"returned an unexpected result type. "
        f"Expected '{expected}', but was '{type_name(found)}' for value: {text}"
    )


def _thrown(error: JsonataError) -> str:
    """Return the cause of an error. AWS shows JSONata's codes, but none for an expression that it
    stopped.
    """
    what = "threw an error during evaluation"
    if error.code == BUDGET_CODE:
        return f"{what}: {error.message}"
    return f"{what}. {error.code}: {error.message}"


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A template of several fields. Each value may be small enough, and together they may be too
    large.
    """

    location: str
    template: Template

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        value = self.template.evaluate(bindings, moment)
        try:
            require_bounded(value)
        except JsonataError as error:
            raise EvaluationError(self.location, _thrown(error)) from None
        return value


@dataclass(frozen=True, slots=True)
class _Object:
    fields: tuple[tuple[str, Template], ...]

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        return {key: field.evaluate(bindings, moment) for key, field in self.fields}


@dataclass(frozen=True, slots=True)
class _Array:
    items: tuple[Template, ...]

    def evaluate(self, bindings: Mapping[str, StrictJson], moment: EvaluationMoment) -> StrictJson:
        return [item.evaluate(bindings, moment) for item in self.items]
