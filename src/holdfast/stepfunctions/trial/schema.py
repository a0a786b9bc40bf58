"""Checks a mocked result against the shape of the response that the called action really has.

Source: AWS API reference, MockInput; texts from recordings. `STRICT` requires every required field,
`PRESENT` checks only the fields that are present, `NONE` checks nothing. A field that the shape
does not have is accepted in every mode, because services add fields.

Fields have the names that the integration uses, but the types of the action's own model, also
where the integration returns something else: `Payload` of `lambda:invoke` and `Output` of a
`.sync:2` task are text here, and times are text (a report of AWS's behaviour, boto3 issue 4683).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from holdfast.asl.program import Json, TaskState
from holdfast.service_names import botocore_name

if TYPE_CHECKING:
    from botocore.model import OperationModel, ServiceModel

Mode: TypeAlias = Literal["STRICT", "PRESENT", "NONE"]

#: For a `.sync` task, the action that describes its result, if this is not the action that started
#: it.
_DESCRIBED_BY: Final[Mapping[str, str]] = {"states:startExecution": "describeExecution"}
#: The actions whose result is defined only by Step Functions. The model of the service has no shape
#: for it.
_UNDESCRIBED: Final = frozenset({"apigateway:invoke", "http:invoke"})

_NUMBERS: Final = frozenset({"integer", "long", "float", "double", "bigdecimal"})
_TEXTS: Final = frozenset({"string", "timestamp", "blob", "character"})


def find_problem(task: TaskState, result: Json, mode: Mode) -> str | None:
    """Return AWS's message for a mocked result that the task's action could not return, or None."""
    if mode == "NONE":
        return None
    shape = _result_shape(task)
    if shape is None:
        return None
    if not isinstance(result, dict):
        return "Mocked result must be a JSON object."
    problem = next(_Schema(mode == "STRICT").structure(shape, result), None)
    return problem and f"Mock result schema validation error: {problem}"


def _result_shape(task: TaskState) -> Any:
    """Return the shape of the task's result; None when no model describes it."""
    action = task.target.removeprefix("aws-sdk:")
    match task.kind:
        case "service" if action not in _UNDESCRIBED:
            service, _, name = action.partition(":")
        case "sync" if action in _DESCRIBED_BY:
            service, name = action.partition(":")[0], _DESCRIBED_BY[action]
        case _:
            return None
    operation = _operation(service, name)
    return None if operation is None else operation.output_shape


def _operation(service: str, action: str) -> OperationModel | None:
    model, name = _service(service), _field(action)
    if model is None or name not in model.operation_names:
        return None
    return model.operation_model(name)


@functools.lru_cache(maxsize=16)
def _service(service: str) -> ServiceModel | None:
    # Imported here because the import of botocore takes tens of milliseconds. Only a test that
    # mocks the response of a service needs it.
    import botocore.loaders  # noqa: PLC0415
    import botocore.model  # noqa: PLC0415

    loader = botocore.loaders.create_loader()
    # Optimised integrations have hyphens in some names: emr-containers.
    bare = service.replace("-", "")
    name = botocore_name(bare, tuple(loader.list_available_services("service-2")))
    if name is None:
        return None
    return botocore.model.ServiceModel(loader.load_service_model(name, "service-2"), name)


@dataclass(frozen=True, slots=True)
class _Schema:
    is_strict: bool

    def structure(self, shape: Any, value: Mapping[str, Json]) -> Iterator[str]:
        """Yield the problems of a structure."""
        if self.is_strict:
            given = set(map(_key, value))
            for name in map(_field, shape.required_members):
                if _key(name) not in given:
                    yield f"Required field '{name}' is missing"
        members = {_key(_field(name)): member for name, member in shape.members.items()}
        for name, item in value.items():
            if _key(name) in members:
                yield from self.value(name, members[_key(name)], item)

    def value(self, name: str, shape: Any, value: Json) -> Iterator[str]:
        """Yield the problems of one value. `name` is that of the nearest field around it, also
        inside lists and maps.
        """
        expected = _expected(shape, value)
        if expected is not None:
            yield f"Field '{name}' must be {expected}"
            return
        yield from _out_of_bounds(name, shape, value)
        match shape.type_name, value:
            case "structure", dict() if not getattr(shape, "is_document_type", False):
                yield from self.structure(shape, value)
            case "list", list():
                for item in value:
                    yield from self.value(name, shape.member, item)
            case "map", dict():
                for key, item in value.items():
                    yield from self.value(key, shape.value, item)


def _expected(shape: Any, value: Json) -> str | None:
    """Return the type that the value should have; None when it has it."""
    kind = shape.type_name
    if kind in _TEXTS:
        return None if isinstance(value, str) else "a string"
    if kind in _NUMBERS:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if is_number else "a number"
    if kind == "boolean":
        return None if isinstance(value, bool) else "a boolean"
    if kind == "list":
        return None if isinstance(value, list) else "an array"
    if kind == "map" or not getattr(shape, "is_document_type", False):
        return None if isinstance(value, dict) else "an object"
    return None


def _out_of_bounds(name: str, shape: Any, value: Json) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    match value:
        case bool() | None:
            return
        case int() | float():
            if least is not None and value < least:
                yield f"Field '{name}' is less than the minimum value"
            if most is not None and value > most:
                yield f"Field '{name}' exceeds the maximum value"
        case str() | list() | dict():
            if least is not None and len(value) < least:
                yield f"Field '{name}' is smaller than the minimum length"
            if most is not None and len(value) > most:
                yield f"Field '{name}' exceeds the maximum length"
    if isinstance(value, str) and getattr(shape, "enum", None) and value not in shape.enum:
        yield f"Field '{name}' is not an expected value"


def _field(member: str) -> str:
    """Return the member's name as a task's result has it: executionArn gives ExecutionArn."""
    return member[:1].upper() + member[1:]


def _key(field: str) -> str:
    """Return the name for a comparison that ignores case after the first letter: the Java SDK
    writes DbName for DBName.
    """
    return field[:1] + field[1:].casefold()
