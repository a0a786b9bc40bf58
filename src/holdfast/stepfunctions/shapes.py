"""Checks requests against AWS's own model of the API, and refuses them with AWS's texts.

As on AWS there are two rounds. First the JSON is converted to the shape of the request; the first
value of a wrong type ends this round (SerializationException). Then every constraint is checked,
and all violations are reported together (ValidationException). The model is botocore's `service-2`
of stepfunctions; loading it takes some milliseconds, once in a process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from holdfast.runtime.storage.json_values import is_unicode
from holdfast.stepfunctions.faults import StatesFault

RequestShape: TypeAlias = Mapping[str, Any]

#: The name of the shape that AWS's model gives to an execution's data. Its bound is the payload
#: limit, which a stack may remove.
PAYLOAD_SHAPE: Final = "SensitiveData"
MODEL_PATH: Final = "stepfunctions/2016-11-23/service-2"
#: Enums that AWS prints in another order than its model has: the order of a Java set.
_PRINTED_ENUMS: Final[Mapping[str, tuple[str, ...]]] = {
    "ExecutionStatus": (
        "SUCCEEDED",
        "TIMED_OUT",
        "PENDING_REDRIVE",
        "ABORTED",
        "FAILED",
        "RUNNING",
    ),
}
_JAVA_TYPES: Final = {
    "string": "String",
    "integer": "Integer",
    "long": "Long",
    "float": "Float",
    "double": "Double",
    "boolean": "Boolean",
}


def require_valid(
    operation: str, request: Any, *, is_payload_limited: bool = True
) -> dict[str, Any]:
    """Return the request's known members without nulls. As on AWS, unknown members are dropped.

    Raises StatesFault SerializationException or ValidationException.
    """
    shape = input_shape(operation)
    if not isinstance(request, dict):
        raise serialization_fault("Unexpected value type in payload")
    read: dict[str, Any] = _read(shape, request)
    problems = [
        problem
        for problem in _problems(shape, read, "")
        if is_payload_limited or not _is_payload_bound(problem)
    ]
    if problems:
        raise StatesFault("ValidationException", _joined([text for _, text in problems]))
    return read


def serialization_fault(message: str) -> StatesFault:
    """Return the error for a body that is not JSON, or not a request."""
    return StatesFault("SerializationException", message)


def input_shape(operation: str) -> str:
    """Return the name of the input shape of one of AWS's operations."""
    return str(_model()["operations"][operation]["input"]["shape"])


@cache
def _model() -> Mapping[str, Any]:
    from botocore.loaders import Loader  # noqa: PLC0415

    # Load the model by its whole path. The loader's search would first list the folders of all
    # services, which is slow.
    model: Mapping[str, Any] = Loader().load_data(MODEL_PATH)
    return model


def _shape(name: str) -> RequestShape:
    shape: RequestShape = _model()["shapes"][name]
    return shape


# -- reading ---------------------------------------------------------------------------------------


def _read(name: str, value: Any) -> Any:
    shape = _shape(name)
    match shape["type"]:
        case "structure":
            if not isinstance(value, dict):
                raise serialization_fault("Expected map or null")
            return {
                member: _read(target["shape"], value[member])
                for member, target in shape["members"].items()
                if value.get(member) is not None
            }
        case "list":
            if not isinstance(value, list):
                raise serialization_fault("Expected list or null")
            return [
                None if item is None else _read(shape["member"]["shape"], item) for item in value
            ]
        case kind:
            return _scalar(str(kind), value)


def _scalar(kind: str, value: Any) -> Any:
    match value:
        case dict():
            raise serialization_fault("Start of structure or map found where not expected.")
        case list():
            raise serialization_fault("Start of list found where not expected")
        case bool() if kind == "boolean":
            return value
        case str() if kind == "string":
            if not is_unicode(value):
                raise serialization_fault("A text holds half of a surrogate pair")
            return value
        case int() if kind in ("integer", "long") and not isinstance(value, bool):
            return value
        case int() | float() if kind in ("float", "double") and not isinstance(value, bool):
            return value
        case float() if kind in ("integer", "long") and value.is_integer():
            return int(value)
        case _:
            raise serialization_fault(
                f"{_token(value)} can not be converted to {_article(_JAVA_TYPES[kind])}"
            )


def _token(value: Any) -> str:
    """Return the name that AWS's JSON reader gives to the token at which it failed."""
    match value:
        case bool():
            return "TRUE_VALUE" if value else "FALSE_VALUE"
        case str():
            return "STRING_VALUE"
        case float() if not value.is_integer():
            return "DECIMAL_VALUE"
        case _:
            return "NUMBER_VALUE"


def _article(word: str) -> str:
    return f"an {word}" if word[0] in "AEIOU" else f"a {word}"


# -- constraints -----------------------------------------------------------------------------------


def _problems(name: str, value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield (shape, sentence) for each constraint that `value` violates, the outermost first."""
    shape = _shape(name)
    if value is None:
        yield name, f"Value null at '{path}' failed to satisfy constraint: Member must not be null"
        return
    for constraint in _unmet(name, shape, value):
        shown = "" if shape.get("sensitive") else f" '{_shown(name, value)}'"
        yield name, f"Value{shown} at '{path}' failed to satisfy constraint: {constraint}"
    match shape["type"]:
        case "structure":
            required = shape.get("required", ())
            for member, target in shape["members"].items():
                if member in value or member in required:
                    yield from _problems(
                        target["shape"], value.get(member), f"{path}.{member}" if path else member
                    )
        case "list":
            for number, item in enumerate(value, 1):
                yield from _problems(shape["member"]["shape"], item, f"{path}.{number}.member")


def _unmet(name: str, shape: RequestShape, value: Any) -> Iterator[str]:
    match shape["type"]:
        case "string":
            if "enum" in shape and value not in shape["enum"]:
                allowed = _PRINTED_ENUMS.get(name, shape["enum"])
                yield f"Member must satisfy enum value set: [{', '.join(allowed)}]"
            if "pattern" in shape and not re.fullmatch(_python(shape["pattern"]), value):
                yield f"Member must satisfy regular expression pattern: {shape['pattern']}"
            yield from _out_of_bounds(shape, len(value), "length")
        case "list":
            yield from _out_of_bounds(shape, len(value), "length")
        case "integer" | "long" | "float" | "double":
            yield from _out_of_bounds(shape, value, "value")


def _out_of_bounds(shape: RequestShape, measure: float, what: str) -> Iterator[str]:
    if "min" in shape and measure < shape["min"]:
        yield f"Member must have {what} greater than or equal to {shape['min']}"
    if "max" in shape and measure > shape["max"]:
        yield f"Member must have {what} less than or equal to {shape['max']}"


def _python(pattern: str) -> str:
    return pattern.replace(r"\p{ASCII}", r"[\x00-\x7f]")


def _shown(name: str, value: Any) -> str:
    """Return the value in the form in which AWS's service prints its own objects."""
    shape = _shape(name)
    match shape["type"]:
        case "structure":
            members = ", ".join(
                f"{member}={_shown(target['shape'], value.get(member))}"
                for member, target in shape["members"].items()
            )
            return f"{name}({members})"
        case "list":
            return f"[{', '.join(_shown(shape['member']['shape'], item) for item in value)}]"
        case _:
            return "null" if value is None else str(value)


def _is_payload_bound(problem: tuple[str, str]) -> bool:
    name, sentence = problem
    return name == PAYLOAD_SHAPE and "less than or equal to" in sentence


def _joined(problems: list[str]) -> str:
    plural = "" if len(problems) == 1 else "s"
    return f"{len(problems)} validation error{plural} detected: {'; '.join(problems)}"
