"""Events on the event bus about executions: that an execution has begun, and how it ended.

Only standard executions of state machines have them, as on AWS. The worker publishes an event after
the commit of the begin or the end. A recovery publishes it again, so an event may come twice.
Source: AWS docs, "Automating Step Functions event delivery with EventBridge".
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Final

from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast.core.state import Execution
from holdfast.limits import STATUS_TEXT_BYTES_MAX
from holdfast.runtime.effects import Effect, Publish
from holdfast.runtime.storage.codec import Record
from holdfast.runtime.storage.json_values import json_text

DETAIL_TYPE: Final = "Step Functions Execution Status Change"
#: The source of AWS's own events, which an account cannot publish. Only the local stack uses it,
#: because it publishes to no event bus of AWS.
AWS_SOURCE: Final = "aws.states"
OWN_SOURCE: Final = "holdfast.states"

BEGINNINGS: Final = frozenset({"ExecutionStarted", "ExecutionRedriven"})


def publish(
    state: Execution, events: Iterable[Event], source: str | None
) -> Generator[Effect, Any, None]:
    """Publish the events that begin or end the execution of `state`.

    `source` is the source of the events on the event bus; None: events are not published.
    """
    for event in events:
        if event.type in BEGINNINGS:
            yield from _tell(_as_begun(state), event.at_ms, source)
        elif event.type in TERMINAL_EVENTS and state.is_ended:
            yield from _tell(state, event.at_ms, source)


def publish_folded(
    state: Execution, record: Record, newest: int, source: str | None
) -> Generator[Effect, Any, None]:
    """Publish the events of a record that has a snapshot in place of its events; the state says
    which they were.

    If the record only renewed the log of a retried execution, it looks like the record of the
    retry, so the event of the retry is published again.
    """
    if state.is_ended and record.sequence == newest:
        yield from _tell(state, record.at_ms, source)
    elif record.sequence == 0 or state.redrives:
        yield from _tell(_as_begun(state), record.at_ms, source)


def is_heard_of(state: Execution) -> bool:
    """Return True when events of the execution are published to the event bus."""
    return state.origin is not None and state.origin["type"] == "STANDARD"


def _tell(state: Execution, at_ms: int, source: str | None) -> Generator[Effect, Any, None]:
    if source is not None and is_heard_of(state):
        assert state.origin is not None
        arn = state.origin["execution_arn"]
        yield Publish(source, DETAIL_TYPE, _detail(state), (arn,), at_ms)


def _as_begun(state: Execution) -> Execution:
    return state._replace(status="RUNNING", stopped_ms=None, output=None, error=None, cause=None)


def _detail(state: Execution) -> dict[str, Any]:
    """Return the response of DescribeExecution, with null for missing fields. Times are ms."""
    origin = state.origin
    assert origin is not None
    given, output = json_text(state.input), None
    if state.status == "SUCCEEDED":
        output = json_text(state.output)
    output_bytes = len((output or "").encode())
    has_input = len(given.encode()) + output_bytes <= STATUS_TEXT_BYTES_MAX
    has_output = output_bytes <= STATUS_TEXT_BYTES_MAX
    is_redrivable = state.status not in {"RUNNING", "SUCCEEDED"}
    reason = f"Execution is {state.status} and cannot be redriven"
    return {
        "executionArn": origin["execution_arn"],
        "stateMachineArn": origin["state_machine_arn"],
        "stateMachineVersionArn": origin.get("version_arn"),
        "stateMachineAliasArn": origin.get("alias_arn"),
        "name": origin["execution_name"],
        "status": state.status,
        "startDate": state.started_ms,
        "stopDate": state.stopped_ms,
        "input": given if has_input else None,
        "inputDetails": {"included": has_input},
        "output": output if has_output else None,
        "outputDetails": None if output is None else {"included": has_output},
        "error": state.error,
        "cause": state.cause,
        "redriveCount": state.redrives,
        "redriveDate": None,
        "redriveStatus": "REDRIVABLE" if is_redrivable else "NOT_REDRIVABLE",
        "redriveStatusReason": None if is_redrivable else reason,
    }
