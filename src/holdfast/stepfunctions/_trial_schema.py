"""A mocked result against the shape that the called action really answers.

Source: AWS API reference, MockInput; wording as recorded. `STRICT` wants every required field,
`PRESENT` only looks at the fields that are there, `NONE` at nothing. A field that the shape does
not have is let pass in every mode: services add fields.

Names are the action's, first letter upper case, as integrations hand them on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from holdfast.asl.program import Json, Task

if TYPE_CHECKING:
    from botocore.model import OperationModel, ServiceModel, Shape

Mode: TypeAlias = Literal["STRICT", "PRESENT", "NONE"]

#: Names of the Java SDK (and of integrations) that are not botocore's without its hyphens.
_SERVICES: Final[Mapping[str, str]] = {
    "sfn": "stepfunctions",
    "states": "stepfunctions",
    "eventbridge": "events",
    "cloudwatchlogs": "logs",
    "cognitoidentityprovider": "cognito-idp",
    "elasticloadbalancingv2": "elbv2",
    "elasticloadbalancing": "elb",
    "elasticmapreduce": "emr",
    "bedrock": "bedrock-runtime",
    "directory": "ds",
    "databasemigration": "dms",
    "iotdataplane": "iot-data",
    "lexruntime": "lex-runtime",
    "migrationhub": "mgh",
    "costexplorer": "ce",
    "servicediscovery": "servicediscovery",
    "transcribe": "transcribe",
    "wafregional": "waf-regional",
}
#: What `.sync` waits for is described by another action than the one that began it.
_DESCRIBED_BY: Final[Mapping[str, str]] = {"states:startExecution": "describeExecution"}
#: Fields that an optimised integration hands on as JSON, whatever the action calls them.
_JSON_FIELDS: Final = frozenset({("lambda:invoke", "Payload")})
#: Results whose shape is the integration's own.
_UNDESCRIBED: Final = frozenset({"apigateway:invoke", "http:invoke"})

_NUMBERS: Final = frozenset({"integer", "long", "float", "double", "bigdecimal"})
_TEXTS: Final = frozenset({"string", "timestamp", "blob", "character"})


def find_problem(task: Task, result: Json, mode: Mode) -> str | None:
    """-> what AWS says of a mocked result that the task's action could not give, or None."""
    if mode == "NONE":
        return None
    shape = _result_shape(task)
    if shape is None:
        return None
    if not isinstance(result, dict):
        return "Mocked result must be a JSON object."
    is_json: Callable[[str], bool] = lambda name: (task.target, name) in _JSON_FIELDS  # noqa: E731
    if task.resource.endswith(".sync:2"):
        is_json = lambda name: name in {"Input", "Output"}  # noqa: E731
    problem = next(_structure(shape, result, mode, is_json), None)
    return problem and f"Mock result schema validation error: {problem}"


def _result_shape(task: Task) -> Shape | None:
    """-> the shape of what the task's result is, or None when nothing describes it."""
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


@functools.lru_cache(maxsize=64)
def _operation(service: str, name: str) -> OperationModel | None:
    model = _service(service)
    if model is None:
        return None
    found = [known for known in model.operation_names if known.casefold() == name.casefold()]
    return model.operation_model(found[0]) if found else None


@functools.lru_cache(maxsize=16)
def _service(service: str) -> ServiceModel | None:
    # botocore takes tens of milliseconds to import: only who mocks a service's answer pays.
    import botocore.loaders  # noqa: PLC0415
    import botocore.model  # noqa: PLC0415

    loader = botocore.loaders.create_loader()
    wanted = _SERVICES.get(service, service)
    for known in loader.list_available_services("service-2"):
        if wanted in (known, known.replace("-", "")):
            description = loader.load_service_model(known, "service-2")
            return botocore.model.ServiceModel(description, known)
    return None


def _structure(
    shape: Any, value: Mapping[str, Json], mode: Mode, is_json: Callable[[str], bool]
) -> Iterator[str]:
    members = {_pascal(name): member for name, member in shape.members.items()}
    if mode == "STRICT":
        for name in map(_pascal, shape.required_members):
            if name not in value:
                yield f"Required field '{name}' is missing"
    for name, item in value.items():
        if name in members and not is_json(name):
            yield from _field(name, members[name], item, mode)


def _field(name: str, shape: Any, value: Json, mode: Mode) -> Iterator[str]:
    """The problems of one value; `name` is the nearest field's, also within lists and maps."""
    expected = _expected(shape, value)
    if expected is not None:
        yield f"Field '{name}' must be {expected}"
        return
    yield from _out_of_bounds(name, shape, value)
    match shape.type_name, value:
        case "structure", dict() if not getattr(shape, "is_document_type", False):
            yield from _structure(shape, value, mode, lambda _: False)
        case "list", list():
            for item in value:
                yield from _field(name, shape.member, item, mode)
        case "map", dict():
            for key, item in value.items():
                yield from _field(key, shape.value, item, mode)


def _expected(shape: Any, value: Json) -> str | None:
    """-> what the value should have been, None when it is that."""
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


def _pascal(name: str) -> str:
    return name[:1].upper() + name[1:]
