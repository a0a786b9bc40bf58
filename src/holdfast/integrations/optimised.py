"""The optimised integrations: one call of a service, with the additions of Step Functions.

`dynamodb:putItem`, `sqs:sendMessage` and similar ones call an action of a service. Fields have the
service's spelling with a capital, JSON is allowed where the service needs text, and the result
contains metadata. A few need more, which is in `RENAMED_FIELDS`, `_ADJUST`, `_RESULTS` and
`_JUDGE`. Sources: AWS docs, "Integrating optimized services with Step Functions"; recordings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.integrations.shaping import Style, epoch_ms, to_text
from holdfast.runtime.effects import RunTask, TaskFailed, TaskSucceeded
from holdfast.service_names import RENAMED_FIELDS, RenamedField, plain_field

STYLE: Final = Style(
    field=plain_field,
    date=epoch_ms,
    # The sources are the AWS docs of each integration, and recordings.
    json_fields=frozenset({"Detail", "Input", "Message", "MessageBody"}),
)
EVENT_ENTRIES_FIELD: Final = "Entries"
_BODY: Final = "Body"

#: The field that is the whole result of an action, with its name in the model. The source is the
#: page "Create and manage Amazon EMR clusters with Step Functions".
_RESULTS: Final = {
    "elasticmapreduce:addStep": RenamedField("StepId", "StepIds", is_list=True),
    "elasticmapreduce:cancelStep": RenamedField(
        "CancelStepsInfo", "CancelStepsInfoList", is_list=True
    ),
    "elasticmapreduce:createCluster": RenamedField("ClusterId", "JobFlowId"),
}


def arguments_of(effect: RunTask) -> Any:
    """Return the task's arguments with the service's own fields."""
    fields = {one.name: one for one in RENAMED_FIELDS.get(effect.name, ())}
    arguments = effect.arguments
    if not fields or not isinstance(arguments, Mapping):
        return arguments
    named: dict[str, Any] = {}
    for name, value in arguments.items():
        one = fields.get(name, RenamedField(name, name))
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
