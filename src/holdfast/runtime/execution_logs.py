"""The log of executions in CloudWatch Logs, as `loggingConfiguration` of a state machine asks.

The worker collects the events of its commits. It writes them in one call after the last commit of a
delivery, so no step of an execution waits for a log:

    12:00:00.00  commit: ExecutionStarted, TaskStateEntered, TaskScheduled
    12:00:00.02  the task runs
    12:00:00.40  commit: TaskSucceeded, TaskStateExited, ExecutionSucceeded
    12:00:00.41  PutLogEvents: six events
    12:00:00.43  the worker deletes the message

A delivery that lasts longer writes every few seconds. After a crash the next delivery writes the
events of the crashed one again, so an event may be logged twice; its id tells. A log event that is
refused is lost and counted, and the execution goes on: AWS does not promise each of them, either.

Source: AWS docs, "Using CloudWatch Logs to log execution history in Step Functions", and its table
of events by level.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from holdfast import resources
from holdfast.core.decision import iso_time
from holdfast.core.events import Event
from holdfast.core.state import Execution, LogSetting
from holdfast.limits import (
    LOG_BATCH_BYTES_MAX,
    LOG_BATCH_EVENTS_MAX,
    LOG_DATA_BYTES_MAX,
    LOG_EVENT_EXTRA_BYTES,
)
from holdfast.runtime.commands.presentation import DATA_FLAGS, shown_details
from holdfast.runtime.effects import Clock, Effect, Measure, NoResult, RunTask, TaskFailed
from holdfast.runtime.measuring import labels_of

_CALL_MS: Final = 10_000
_PUT: Final = "putLogEvents"
_CREATE: Final = "createLogStream"
_NOT_FOUND: Final = "ResourceNotFoundException"
_FATAL: Final = frozenset({"ExecutionAborted", "ExecutionFailed", "ExecutionTimedOut"})
_PROBLEMS: Final = ("Aborted", "Failed", "TimedOut")

#: One event for PutLogEvents.
LogLine: TypeAlias = dict[str, Any]


def is_wanted(level: str, event_type: str) -> bool:
    """Return True when an event of the type is logged at the level."""
    match level:
        case "ALL":
            return True
        case "ERROR":
            return event_type.endswith(_PROBLEMS) or event_type == "FailStateEntered"
        case _:
            return event_type in _FATAL


def write(tenant: str, state: Execution, events: Sequence[Event]) -> NoResult:
    """Write the newest events of the execution, as far as its machine wants them."""
    assert state.origin is not None
    setting = state.origin["log"]
    lines = list(_lines(state, setting, events))
    for batch in batched_lines(lines):
        yield from _put(tenant, state, setting, batch)


def _lines(state: Execution, setting: LogSetting, events: Sequence[Event]) -> Iterator[LogLine]:
    assert state.origin is not None
    redrives = state.redrives - sum(event.type == "ExecutionRedriven" for event in events)
    for event in events:
        redrives += event.type == "ExecutionRedriven"
        # An event without an id is one that AWS does not have.
        if event.id and is_wanted(setting["level"], event.type):
            message = {
                "id": str(event.id),
                "type": event.type,
                "details": _details(event, has_data=setting["has_data"]),
                "previous_event_id": str(event.previous),
                "event_timestamp": str(event.at_ms),
                "execution_arn": state.origin["execution_arn"],
                "redrive_count": str(redrives),
            }
            text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
            yield {"Timestamp": event.at_ms, "Message": text}


def _details(event: Event, *, has_data: bool) -> dict[str, Any]:
    """Return the details as GetExecutionHistory has them, without the end of data that is too long
    for CloudWatch Logs.
    """
    details = shown_details(event, has_data=has_data)
    for name, flag in DATA_FLAGS.items():
        text = details.get(name)
        if isinstance(text, str) and (short := _shortened(text)) != text:
            details[name] = short
            if flag is not None:
                details[flag] = {"truncated": True}
    return details


def _shortened(text: str) -> str:
    """Return the beginning of the text that has at most LOG_DATA_BYTES_MAX when it is escaped."""
    # A character has at most six bytes when it is escaped.
    while len(text) * 6 > LOG_DATA_BYTES_MAX:
        size = len(json.dumps(text, ensure_ascii=False).encode(errors="surrogatepass"))
        if size <= LOG_DATA_BYTES_MAX:
            return text
        text = text[: len(text) * 9 // 10]
    return text


def batched_lines(lines: Iterable[LogLine]) -> Iterator[list[LogLine]]:
    """Yield the lines in parts, each of which one call may hold."""
    batch: list[LogLine] = []
    size = 0
    # CloudWatch Logs refuses events that are not in the order of their times.
    for line in sorted(lines, key=lambda line: line["Timestamp"]):
        length = len(line["Message"].encode(errors="surrogatepass")) + LOG_EVENT_EXTRA_BYTES
        if batch and (len(batch) >= LOG_BATCH_EVENTS_MAX or size + length > LOG_BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += length
    if batch:
        yield batch


def _put(tenant: str, state: Execution, setting: LogSetting, batch: list[LogLine]) -> NoResult:
    assert state.origin is not None
    day = iso_time(batch[0]["Timestamp"])[:10]
    stream = {
        "LogGroupName": setting["group"],
        "LogStreamName": f"states/{state.origin['state_machine_name']}/{day}",
    }
    put = {**stream, "LogEvents": batch}
    refused = yield from _call(tenant, state, _PUT, put)
    if refused is not None and _NOT_FOUND in refused:
        # The first log event of the machine on this day. If another worker has created the stream
        # in the meantime, the second call succeeds all the same.
        yield from _call(tenant, state, _CREATE, stream)
        refused = yield from _call(tenant, state, _PUT, put)
    if refused is not None:
        labels = labels_of(state)._replace(error=refused)
        yield Measure(resources.METRIC_LOG_EVENTS_LOST, len(batch), labels=labels)


def _call(
    tenant: str, state: Execution, action: str, arguments: Mapping[str, Any]
) -> Generator[Effect, Any, str | None]:
    """Return the error of the call; None when it succeeded. It has the rights of tasks."""
    now_ms = yield Clock()
    result = yield RunTask(
        name=f"aws-sdk:cloudwatchlogs:{action}",
        kind="service",
        arguments=arguments,
        tenant=tenant,
        run=state.run,
        run_name=None,
        workflow=state.workflow,
        entry=0,
        attempt=0,
        deadline_ms=now_ms + _CALL_MS,
    )
    return (result.error or "unknown") if isinstance(result, TaskFailed) else None
