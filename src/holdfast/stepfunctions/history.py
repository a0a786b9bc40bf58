"""GetExecutionHistory: the events of the log in AWS's form, without Holdfast's own.

Ids, predecessors and details are AWS's own already (`core/events.py`). This module adds the
`…Details` members that say that nothing was cut, and empty details where AWS has empty ones.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

from holdfast.core.events import Event
from holdfast.runtime import inbox
from holdfast.runtime.commands.presentation import (
    details_name,
    details_of,
    read_records,
    sent_bytes,
    without_secrets,
)
from holdfast.runtime.effects import Effect, JsonResult
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.finding import FoundExecution, require_execution
from holdfast.stepfunctions.pages import page

#: Data members and the members that describe them. `parameters` have none (AWS API, HistoryEvent).
_DATA: Final[Mapping[str, str | None]] = {
    "input": "inputDetails",
    "output": "outputDetails",
    "assignedVariables": "assignedVariablesDetails",
    "parameters": None,
}
#: Events for which AWS has no details member; every other event has one, at least {}.
WITHOUT_DETAILS: Final = frozenset(
    {
        "LambdaFunctionStarted",
        "MapStateAborted",
        "MapStateFailed",
        "MapStateSucceeded",
        "MapRunAborted",
        "MapRunSucceeded",
        "ParallelStateAborted",
        "ParallelStateFailed",
        "ParallelStateStarted",
        "ParallelStateSucceeded",
        "TaskStateAborted",
        "WaitStateAborted",
    }
)


def get_execution_history(service: Service, request: Mapping[str, Any], _: bytes) -> JsonResult:
    """Return the history. Costs a read of the whole log for each page. An execution without a log
    has one event.
    """
    found = yield from require_execution(service, request["executionArn"])
    events = yield from _events(service, found)
    is_reversed = bool(request.get("reverseOrder"))
    if is_reversed:
        events.reverse()
    scope = f"history#{found.run}#{is_reversed}"
    has_data = request.get("includeExecutionData") is not False

    def bytes_of(event: Event) -> int:
        return sent_bytes(aws_event(event, has_data=has_data))

    shown, token = page(
        service, request, events, scope, _key, is_descending=is_reversed, bytes_of=bytes_of
    )
    return {"events": [aws_event(event, has_data=has_data) for event in shown], **token}


def _key(event: Event) -> str:
    return f"{event.id:09d}"


def _events(service: Service, found: FoundExecution) -> Generator[Effect, Any, list[Event]]:
    if found.state is None:
        return [(yield from _started(service, found))]
    records = yield from read_records(service.tenant, found.run)
    events = [event for record in records for event in record.events if event.id]
    return [_without_secrets(event) for event in events] if found.is_workflow else events


def _without_secrets(event: Event) -> Event:
    shown = {name: without_secrets(member) for name, member in event.details.items()}
    return event._replace(details=shown)


def _started(service: Service, found: FoundExecution) -> Generator[Effect, Any, Event]:
    assert found.start is not None
    details: dict[str, Any] = {"roleArn": found.origin["role_arn"]}
    if found.start.input:
        data = yield from inbox.unstow(service.tenant, found.run, found.start.input)
        details = {"input": without_secrets(data) if found.is_workflow else data, **details}
    arns = {
        "stateMachineAliasArn": found.origin.get("alias_arn"),
        "stateMachineVersionArn": found.origin.get("version_arn"),
    }
    details |= {name: arn for name, arn in arns.items() if arn is not None}
    return Event("ExecutionStarted", 1, 0, found.started_ms, details, {})


# -- AWS's form ------------------------------------------------------------------------------------


def aws_events(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the events of a log as AWS shows them. Times are ms since the epoch."""
    return [aws_event(event) for event in events if event.id]


def aws_event(event: Event, *, has_data: bool = True) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "timestamp": event.at_ms,
        "type": event.type,
        "id": event.id,
        "previousEventId": event.previous,
    }
    if event.type in WITHOUT_DETAILS:
        return shown
    details = {
        name: member for name, member in details_of(event).items() if has_data or name not in _DATA
    }
    truncation = {
        flag: {"truncated": False}
        for name, flag in _DATA.items()
        if flag is not None and name in details
    }
    return {**shown, details_name(event.type): {**details, **truncation}}
