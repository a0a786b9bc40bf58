"""The actions of AWS's services and their parameters, from botocore's models.

The compiler checks `aws.s3.put_object(Bucket=…)` with them. Models are files of the installed
botocore: nothing here calls AWS, and only the compiler and the testing kit read them.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, Literal, TypeAlias

from holdfast.service_names import botocore_name, operation_name, resource_name, sdk_field

ParameterKind: TypeAlias = Literal[
    "text", "bytes", "whole", "number", "truth", "moment", "object", "list", "map", "any"
]

_KINDS: Final[Mapping[str, ParameterKind]] = {
    "string": "text",
    "character": "text",
    "blob": "bytes",
    "integer": "whole",
    "long": "whole",
    "float": "number",
    "double": "number",
    "bigdecimal": "number",
    "boolean": "truth",
    "timestamp": "moment",
    "structure": "object",
    "list": "list",
    "map": "map",
}


class UnknownName(Exception):  # noqa: N818 - the compiler turns it into a refusal
    """botocore has no service or action with this `name`. `known` are the names that it has;
    `meant` is the one that it has for the service which Step Functions calls `name`.
    """

    def __init__(
        self,
        what: Literal["service", "action"],
        name: str,
        known: tuple[str, ...],
        meant: str | None = None,
    ) -> None:
        super().__init__(name)
        self.what = what
        self.name = name
        self.known = known
        self.meant = meant


@dataclass(frozen=True)
class Parameter:
    """One parameter or result, or a part of one. Models may be recursive, so parts are read only
    when needed.
    """

    shape: Any

    @property
    def kind(self) -> ParameterKind:
        if getattr(self.shape, "is_document_type", False):
            return "any"
        return _KINDS.get(self.shape.type_name, "any")

    @cached_property
    def fields(self) -> Mapping[str, Parameter]:
        """Return the fields of an object, with the names of Step Functions."""
        return {sdk_field(name): Parameter(one) for name, one in self.shape.members.items()}

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(map(sdk_field, self.shape.required_members))

    @property
    def element(self) -> Parameter:
        """Return the type of the items of a list, or of the values of a map."""
        return Parameter(self.shape.member if self.kind == "list" else self.shape.value)


@dataclass(frozen=True)
class Action:
    """An action. `target` is as in a Task's Resource: `aws-sdk:s3:putObject`. The two other fields
    are None for an action without parameters or without a result.
    """

    target: str
    request: Parameter | None
    response: Parameter | None


@cache
def action_of(service: str, method: str) -> Action:
    """Return the action of `aws.<service>.<method>`. Raises UnknownName."""
    found = _services().get(service)
    if found is None:
        other = botocore_name(service, tuple(_services().values()))
        meant = None if other is None else _attribute(other)
        raise UnknownName("service", service, tuple(_services()), meant)
    operation = _operations(found).get(method)
    if operation is None:
        raise UnknownName("action", method, tuple(_operations(found)))
    model = _model(found).operation_model(operation)
    target = f"aws-sdk:{resource_name(found)}:{operation[:1].lower()}{operation[1:]}"
    request, response = (
        None if shape is None else Parameter(shape)
        for shape in (model.input_shape, model.output_shape)
    )
    return Action(target, request, response)


@cache
def python_name(target: str) -> str:
    """Return the Python name of a target: "aws-sdk:eventbridge:putEvents" gives
    "aws.events.put_events".
    """
    from botocore import xform_name  # noqa: PLC0415

    _, family, action = target.split(":")
    service = botocore_name(family, tuple(_services().values()))
    return f"aws.{_attribute(service or family)}.{xform_name(operation_name(action))}"


@cache
def _services() -> Mapping[str, str]:
    return {_attribute(name): name for name in _session().get_available_services()}


def _attribute(service: str) -> str:
    """Return the name of a service in Python: "cognito-idp" gives "cognitoidp", "lambda" gives
    "lambda_", because a keyword of Python cannot be a name.
    """
    bare = service.replace("-", "")
    return f"{bare}_" if keyword.iskeyword(bare) else bare


@cache
def _operations(service: str) -> Mapping[str, str]:
    from botocore import xform_name  # noqa: PLC0415

    return {xform_name(name): name for name in _model(service).operation_names}


@cache
def _model(service: str) -> Any:
    return _session().get_service_model(service)


@cache
def _session() -> Any:
    from botocore.session import Session  # noqa: PLC0415

    return Session()
