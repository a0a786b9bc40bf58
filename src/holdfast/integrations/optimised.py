"""The optimised integrations: one call of a service, with the additions of Step Functions.

`dynamodb:putItem`, `sqs:sendMessage` and similar ones call an action of a service. Fields have the
service's spelling with a capital, JSON is allowed where the service needs text, and the result
contains metadata. A few need more, which is in `_ADJUST` and `_JUDGE`. Sources: AWS docs,
"Integrating optimized services with Step Functions"; recordings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
}
#: For actions to which Step Functions gives a name of its own, the operation of the service.
_OPERATIONS: Final = {
    "elasticmapreduce:addStep": "AddJobFlowSteps",
    "elasticmapreduce:cancelStep": "CancelSteps",
    "elasticmapreduce:createCluster": "RunJobFlow",
    "elasticmapreduce:terminateCluster": "TerminateJobFlows",
}

EVENT_ENTRIES_FIELD: Final = "Entries"


def operation_of(target: str, operation: str) -> str:
    return _OPERATIONS.get(target, operation)


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
    entries = [
        {**entry, "Resources": [*entry.get("Resources", ()), *effect.arns]}
        for entry in request.get(EVENT_ENTRIES_FIELD, ())
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
