"""The optimised integrations: one call of a service, with the additions of Step Functions.

`dynamodb:putItem`, `sqs:sendMessage` and similar ones call an action of a service. Fields have the
service's spelling with a capital, JSON is allowed where the service needs text, and the result
contains metadata. A few need more, which is in `_FIELDS`, `_ADJUST`, `_RESULTS` and `_JUDGE`.
Sources: AWS docs,
"Integrating optimized services with Step Functions"; recordings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.integrations.shaping import Style, epoch_ms, to_text
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.service_names import plain_field

STYLE: Final = Style(
    field=plain_field,
    date=epoch_ms,
    # The sources are the AWS docs of each integration, and recordings.
    json_fields=frozenset({"Detail", "Input", "Message", "MessageBody"}),
)
#: The services for which the first word of a Resource differs from botocore's name, with both
#: names.
BOTOCORE_NAMES: Final = {
    "elasticmapreduce": "emr",
    "bedrock": "bedrock-runtime",
    "states": "stepfunctions",
    # botocore has this action of Bedrock in another service than the other actions, which are calls
    # of models.
    "bedrock:createModelCustomizationJob": "bedrock",
}
#: For actions to which Step Functions gives a name of its own, the operation of the service.
_OPERATIONS: Final = {
    "elasticmapreduce:addStep": "AddJobFlowSteps",
    "elasticmapreduce:cancelStep": "CancelSteps",
    "elasticmapreduce:createCluster": "RunJobFlow",
    "elasticmapreduce:modifyInstanceFleetByName": "ModifyInstanceFleet",
    "elasticmapreduce:modifyInstanceGroupByName": "ModifyInstanceGroups",
    "elasticmapreduce:setClusterTerminationProtection": "SetTerminationProtection",
    "elasticmapreduce:terminateCluster": "TerminateJobFlows",
}

EVENT_ENTRIES_FIELD: Final = "Entries"
_BODY: Final = "Body"


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that Step Functions calls `name`, and the service `member`. `is_list`: the service
    has a list, and Step Functions its only item.
    """

    name: str
    member: str
    is_list: bool = False


#: The fields of requests whose name or form differs from that in the model of the service. Source:
#: AWS docs, "Create and manage Amazon EMR clusters with Step Functions".
_FIELDS: Final[Mapping[str, tuple[_Field, ...]]] = {
    "elasticmapreduce:addStep": (
        _Field("ClusterId", "JobFlowId"),
        _Field("Step", "Steps", is_list=True),
    ),
    "elasticmapreduce:cancelStep": (_Field("StepId", "StepIds", is_list=True),),
    "elasticmapreduce:modifyInstanceGroupByName": (
        _Field("InstanceGroup", "InstanceGroups", is_list=True),
    ),
    "elasticmapreduce:setClusterTerminationProtection": (
        _Field("ClusterId", "JobFlowIds", is_list=True),
    ),
    "elasticmapreduce:terminateCluster": (_Field("ClusterId", "JobFlowIds", is_list=True),),
}
#: The field that is the whole result of an action, with its name in the model. The source is the
#: same page.
_RESULTS: Final = {
    "elasticmapreduce:addStep": _Field("StepId", "StepIds", is_list=True),
    "elasticmapreduce:cancelStep": _Field("CancelStepsInfo", "CancelStepsInfoList", is_list=True),
    "elasticmapreduce:createCluster": _Field("ClusterId", "JobFlowId"),
}


def operation_of(target: str, operation: str) -> str:
    return _OPERATIONS.get(target, operation)


def service_of(target: str) -> str:
    """Return botocore's name of the service, without hyphens."""
    family = target.partition(":")[0]
    named = BOTOCORE_NAMES.get(target) or BOTOCORE_NAMES.get(family, family)
    return named.replace("-", "")


def arguments_of(effect: RunTask) -> Any:
    """Return the task's arguments with the service's own fields."""
    fields = {one.name: one for one in _FIELDS.get(effect.name, ())}
    arguments = effect.arguments
    if not fields or not isinstance(arguments, Mapping):
        return arguments
    named: dict[str, Any] = {}
    for name, value in arguments.items():
        one = fields.get(name, _Field(name, name))
        named[one.member] = [value] if one.is_list else value
    return named


def result_fields(target: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result with the fields of Step Functions."""
    if target == "bedrock:invokeModel":
        return {**result, _BODY: _parsed(result.get(_BODY, ""))}
    one = _RESULTS.get(target)
    if one is None or one.member not in result:
        return result
    value = result[one.member]
    return {one.name: value[0] if one.is_list and value else value}


def _parsed(text: str) -> Any:
    """Return the JSON value of a model's answer (AWS docs, "Invoke and customize Amazon Bedrock
    models"), or the text of an answer that is no JSON.
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def adjusted(effect: RunTask, request: dict[str, Any]) -> dict[str, Any]:
    adjust = _ADJUST.get(effect.name)
    return request if adjust is None else adjust(effect, request)


def judged(target: str, output: dict[str, Any]) -> TaskSucceeded | TaskFailed:
    judge = _JUDGE.get(target)
    return TaskSucceeded(output) if judge is None else judge(output)


def _with_resources(effect: RunTask, request: dict[str, Any]) -> dict[str, Any]:
    """Return the request with resources: each event names the state machine and execution that have
    sent it.
    """
    if EVENT_ENTRIES_FIELD not in request:
        return request
    entries = [
        {**entry, "Resources": [*entry.get("Resources", ()), *effect.arns]}
        for entry in request[EVENT_ENTRIES_FIELD]
    ]
    return {**request, EVENT_ENTRIES_FIELD: entries}


def _first_failed_entry(output: dict[str, Any]) -> TaskSucceeded | TaskFailed:
    """Fail the task if the event bus has refused an entry. The other entries are delivered
    nevertheless.
    """
    if not output.get("FailedEntryCount"):
        return TaskSucceeded(output)
    cause = {name: output[name] for name in (EVENT_ENTRIES_FIELD, "FailedEntryCount")}
    return TaskFailed("EventBridge.FailedEntry", to_text(cause))


_ADJUST: Final[Mapping[str, Callable[[RunTask, dict[str, Any]], dict[str, Any]]]] = {
    "events:putEvents": _with_resources,
}
_JUDGE: Final[Mapping[str, Callable[[dict[str, Any]], TaskSucceeded | TaskFailed]]] = {
    "events:putEvents": _first_failed_entry,
}
