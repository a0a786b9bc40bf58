"""The arguments of the calls of services, as a definition writes them.

AWS compares them with the model of the action when it creates a machine:

    "Parameters": {"Tags": [{"key": "a"}]}   of sagemaker:createTrainingJob
    -> The field "key" is not supported by Step Functions at /States/Train/Parameters

The location is that of the whole arguments, however deep the field is. What an execution computes
is checked when the task runs: a field whose name ends with `.$`, and an expression in JSONata. Such
a field counts as present.

Sources of the three sentences, which AWS has answered to CreateStateMachine or
ValidateStateMachineDefinition:

* The field "…" is not supported by Step Functions: issues amazon-sagemaker-examples#4492 and
  aws-cdk#10014 (optimised) and aws-cdk#29968 (`aws-sdk`) of github.com/aws.
* The field '…' is required but was missing, and … field is required for resource ARN: measured on
  2026-09-05 by github.com/badmintoncryer/cdk-preflight, rule pf-sfn-asl-integration-parameters, for
  12 fields of 9 optimised integrations. All of them are required by the models. For `aws-sdk`, the
  `ClientToken` of `emrserverless:startJobRun` was reported missing.

Types, enumerations and required fields of inner objects are not checked: no published answer of AWS
shows how it checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from holdfast.asl.documents import Language
from holdfast.asl.resources import Resource, read_resource
from holdfast.asl.template import is_expression
from holdfast.asl.validation.report import SCHEMA, DefinitionProblem
from holdfast.service_names import (
    RENAMED_FIELDS,
    RenamedField,
    member_of,
    operation_name,
    optimised_operation,
    optimised_service,
    plain_field,
    sdk_field,
    unsupported_field,
)
from holdfast.stepfunctions.models import model_of

if TYPE_CHECKING:
    from botocore.model import OperationModel

_SDK_PREFIX: Final = "aws-sdk:"
_CALLS: Final = frozenset({"service", "callback", "sync"})
_DYNAMIC: Final = ".$"
#: The optimised integrations whose fields are not those of one action of a service.
_OWN_FIELDS: Final = frozenset(
    {
        "apigateway:invoke",
        "eks:call",
        "eks:runJob",
        "elasticmapreduce:modifyInstanceFleetByName",
        "elasticmapreduce:modifyInstanceGroupByName",
        "http:invoke",
    }
)
#: The fields that an integration has besides those of the action. Source: AWS docs, "Invoke and
#: customize Amazon Bedrock models with Step Functions".
_MORE_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "bedrock:invokeModel": frozenset({"Input", "Output"})
}


def problems_of_arguments(
    state: Mapping[str, Any], place: str, language: Language
) -> Iterator[DefinitionProblem]:
    """Yield the problems of the arguments of a Task that calls a service. The state is valid in
    other respects.
    """
    written = state["Resource"]
    resource = read_resource(written)
    if resource is None or resource.kind not in _CALLS or not written.startswith("arn:"):
        return
    field = "Arguments" if language == "JSONata" else "Parameters"
    if field not in state:
        message = f"{field} field is required for resource ARN: {written}"
        yield DefinitionProblem("ERROR", SCHEMA, message, place)
        return
    action = _action_of(resource)
    if action is None or not isinstance(state[field], Mapping):
        return
    for message in _Call(resource.target, action, language).problems(state[field]):
        yield DefinitionProblem("ERROR", SCHEMA, message, f"{place}/{field}")


def _action_of(resource: Resource) -> OperationModel | None:
    """Return the model of an action that has parameters; None for one without, and where botocore
    does not have it.
    """
    target = resource.target
    if target in _OWN_FIELDS:
        return None
    family, _, name = target.removeprefix(_SDK_PREFIX).rpartition(":")
    operation = operation_name(name)
    if not target.startswith(_SDK_PREFIX):
        family, operation = optimised_service(target), optimised_operation(target, operation)
    model = model_of(family)
    if model is None or operation not in model.operation_names:
        return None
    action = model.operation_model(operation)
    return action if action.input_shape is not None else None


class _Call:
    """The arguments of one call, and the names that the integration gives to their fields."""

    def __init__(self, target: str, action: OperationModel, language: Language) -> None:
        self._action = action
        self._is_sdk = target.startswith(_SDK_PREFIX)
        self._name_of: Callable[[str], str] = sdk_field if self._is_sdk else plain_field
        self._is_jsonata = language == "JSONata"
        self._renamed = {one.name: one for one in RENAMED_FIELDS.get(target, ())}
        self._more = _MORE_FIELDS.get(target, frozenset())

    def problems(self, arguments: Mapping[str, Any]) -> Iterator[str]:
        """Yield AWS's sentences: unknown fields before missing ones."""
        shape: Any = self._action.input_shape
        given = {name: self._field(shape.members, name) for name in arguments}
        for name, field in given.items():
            if field is not None:
                yield from self._within(self._shape_of(shape, field), arguments[name])
            elif name not in self._more and not self._is_computed(name, arguments[name]):
                yield unsupported_field(name)
        present = {field.member for field in given.values() if field is not None}
        names = {one.member: one.name for one in self._renamed.values()}
        for member in self._required(shape):
            if member not in present:
                name = names.get(member, self._name_of(member))
                yield f"The field '{name}' is required but was missing"

    def _required(self, shape: Any) -> list[str]:
        """Return the required members. An optimised integration makes idempotency tokens itself:
        the examples of AWS docs, "Create and manage EMR Serverless applications with Step
        Functions", have none.
        """
        tokens = () if self._is_sdk else self._action.idempotent_members
        return [member for member in shape.required_members if member not in tokens]

    def _field(self, members: Mapping[str, Any], name: str) -> RenamedField | None:
        bare = name if self._is_jsonata else name.removesuffix(_DYNAMIC)
        if bare in self._renamed:
            return self._renamed[bare]
        member = member_of(members, bare, self._name_of)
        return None if member is None else RenamedField(bare, member)

    def _shape_of(self, shape: Any, field: RenamedField) -> Any:
        found = shape.members[field.member]
        return found.member if field.is_list else found

    def _within(self, shape: Any, value: Any) -> Iterator[str]:
        """Yield the unknown fields within a value. A value of another type than the model's is not
        looked into.
        """
        match shape.type_name, value:
            case "list", list():
                for item in value:
                    yield from self._within(shape.member, item)
            case "map", dict():
                for item in value.values():
                    yield from self._within(shape.value, item)
            case "structure", dict() if not getattr(shape, "is_document_type", False):
                yield from self._unknown_in(shape.members, value)
            case _:
                return

    def _unknown_in(self, members: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[str]:
        for name, item in value.items():
            if self._is_computed(name, item):
                continue
            member = member_of(members, name, self._name_of)
            if member is None:
                yield unsupported_field(name)
            else:
                yield from self._within(members[member], item)

    def _is_computed(self, name: str, value: Any) -> bool:
        if self._is_jsonata:
            return isinstance(value, str) and is_expression(value)
        return name.endswith(_DYNAMIC)
