"""GetExecutionHistory: the events of the log in AWS's form, without events that AWS does not have.

The stored ids, predecessors and details are already AWS's (`core/events.py`). This module adds
empty details where AWS has them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from holdfast.core.events import Event
from holdfast.runtime import inbox
from holdfast.runtime.commands.presentation import (
    details_name,
    sent_bytes,
    shown_details,
    without_secrets,
)
from holdfast.runtime.effects import Effect, JsonResult
from holdfast.runtime.storage.codec import Record
from holdfast.runtime.storage.histories import Forwards, backwards
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.finding import FoundExecution, require_execution
from holdfast.stepfunctions.pages import fitting, make_token, page_size, read_token

#: The events that have no details member on AWS. Every other event has one, which is {} at least.
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
    """Return the history. Costs a read of the page, and of the records between it and a snapshot.
    An execution without a log has one event.
    """
    found = yield from require_execution(service, request["executionArn"])
    is_reversed = bool(request.get("reverseOrder"))
    scope = f"history#{found.run}#{is_reversed}"
    last = None
    if "nextToken" in request:
        last = _Place.parse((yield from read_token(service, request["nextToken"], scope)))
    wanted = page_size(request) + 1  # one more, to find out whether there is another page
    if found.state is None:
        events = [(0, (yield from _started(service, found)))] if last is None else []
    elif is_reversed:
        events = yield from _before(service, found, last, wanted)
    else:
        events = yield from _after(service, found, last, wanted)
    has_data = request.get("includeExecutionData") is not False

    def bytes_of(numbered: _Numbered) -> int:
        return sent_bytes(aws_event(numbered[1], has_data=has_data))

    shown = fitting(events[: wanted - 1], bytes_of)
    token = {}
    if len(shown) < len(events):
        record, event = shown[-1]
        text = yield from make_token(service, _Place(event.id, record).text(), scope)
        token = {"nextToken": text}
    return {"events": [aws_event(event, has_data=has_data) for _, event in shown], **token}


#: The number of a record, and an event in it.
_Numbered: TypeAlias = tuple[int, Event]


@dataclass(frozen=True, slots=True)
class _Place:
    """The last event that was shown: its id, and the number of its record. A token of an older
    release has no record number; then the whole log is read.
    """

    id: int
    record: int | None

    @staticmethod
    def parse(text: str) -> _Place:
        event_id, has_record, record = text.partition("@")
        return _Place(int(event_id), int(record) if has_record else None)

    def text(self) -> str:
        return f"{self.id:09d}@{self.record}"


def _after(
    service: Service, found: FoundExecution, last: _Place | None, wanted: int
) -> Generator[Effect, Any, list[_Numbered]]:
    """Return the `wanted` events after the place, or all if there are fewer."""
    first = 0 if last is None or last.record is None else last.record
    parts = Forwards(service.tenant, found.run, first)
    events: list[_Numbered] = []
    while len(events) < wanted and (records := (yield from parts.next())):
        newer = _events_of(found, records)
        events += [one for one in newer if last is None or one[1].id > last.id]
    return events[:wanted]


def _before(
    service: Service, found: FoundExecution, last: _Place | None, wanted: int
) -> Generator[Effect, Any, list[_Numbered]]:
    """Return the `wanted` events before the place, the newest first, or all if there are fewer."""
    before = None if last is None or last.record is None else last.record + 1
    events: list[_Numbered] = []
    while len(events) < wanted:
        records = yield from backwards(service.tenant, found.run, before)
        if not records:
            break
        older = _events_of(found, records)[::-1]
        events += [one for one in older if last is None or one[1].id < last.id]
        before = records[0].sequence
    return events[:wanted]


def _events_of(found: FoundExecution, records: Iterable[Record]) -> list[_Numbered]:
    return [
        (record.sequence, _without_secrets(event) if found.is_workflow else event)
        for record in records
        for event in record.events
        if event.id
    ]


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
    return {**shown, details_name(event.type): shown_details(event, has_data=has_data)}
