"""Executions, their history and the list as plain JSON, in the form of the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, assert_never

from holdfast.asl.program import Json
from holdfast.asl.resources import CONTAINER, POOL, is_request, started_by
from holdfast.core.decision import iso_time
from holdfast.core.events import Event
from holdfast.core.run_ids import child_run
from holdfast.core.state import (
    Admission,
    Attempt,
    Attribute,
    Awaiting,
    ChildExecutions,
    Delay,
    Entered,
    Execution,
    Exited,
    FailedState,
    Frame,
    Lanes,
    Pause,
    Timer,
    is_told,
)
from holdfast.core.subjects import Subject
from holdfast.limits import PAGE_BYTES_MAX, SHOWN_BYTES_MAX
from holdfast.runtime import inbox
from holdfast.runtime.child_workflows import name_in
from holdfast.runtime.effects import Item
from holdfast.runtime.listing import ListEntry
from holdfast.runtime.questions import question_id
from holdfast.runtime.storage.codec import Record
from holdfast.runtime.storage.json_values import json_text
from holdfast.sealed import hidden

#: The place of an event: the number of its record, and its number in the record.
EventPlace: TypeAlias = tuple[int, int]
BEGINNING: Final[EventPlace] = (-1, 0)

#: AWS's name for the details of these event types, which differs from the event type's own name.
_DETAILS: Final[Mapping[str, str]] = {"StateEntered": "stateEntered", "StateExited": "stateExited"}
#: The members with data, and for each the member that describes it. `parameters` has no such member
#: (AWS API, HistoryEvent).
DATA_FLAGS: Final[Mapping[str, str | None]] = {
    "input": "inputDetails",
    "output": "outputDetails",
    "assignedVariables": "assignedVariablesDetails",
    "parameters": None,
}
#: Fields of the details that AWS gives as JSON text.
_TEXTS: Final = frozenset({"input", "output", "parameters"})


def execution(
    state: Execution, source_map: Mapping[str, Any], token_of: Callable[[Execution, Frame], str]
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "execution": state.run,
        "name": state.name,
        "workflow": state.workflow,
        "definition": state.definition,
        "status": state.status,
        "started": iso_time(state.started_ms),
        "input": state.input,
    }
    if state.origin is not None:
        shown["arn"] = state.origin["execution_arn"]
    if state.redrives:
        shown["retries"] = state.redrives
    if state.parent is not None:
        shown["parent"] = state.parent["run"]
    if state.fork_of is not None:
        shown["fork_of"] = {"execution": state.fork_of["run"], "step": state.fork_of["step"]}
    if state.stopped_ms is not None:
        shown["stopped"] = iso_time(state.stopped_ms)
    if state.status == "SUCCEEDED":
        shown["output"] = state.output
    texts = {"error": state.error, "cause": state.cause}
    shown |= {key: text for key, text in texts.items() if text is not None}
    if state.paused is not None:
        shown["paused"] = _pause(state.paused)
    if state.published:
        shown["published"] = dict(state.published)
    if state.attributes:
        shown["attributes"] = shown_attributes(state.attributes)
    waits = [_wait(state, frame, source_map, token_of) for frame in state.frames.values()]
    return {**shown, "waits": [wait for wait in waits if wait is not None]}


def _pause(pause: Pause) -> dict[str, str]:
    shown = {"since": iso_time(pause.since_ms), "reason": pause.reason, "timers": pause.timers}
    return {**shown, "by": pause.by} if pause.by else shown


def _wait(
    state: Execution,
    frame: Frame,
    source_map: Mapping[str, Any],
    token_of: Callable[[Execution, Frame], str],
) -> dict[str, Any] | None:
    """Return what one frame waits for, since when, until when, and its line in the source."""
    what = _waiting(state, frame, token_of)
    if what is None:
        return None
    wait = {**what, "state": frame.position, "since": iso_time(frame.entered_ms)}
    source = source_map.get("sources", {}).get(frame.position)
    return {**wait, "source": source} if source else wait


def _waiting(
    state: Execution, frame: Frame, token_of: Callable[[Execution, Frame], str]
) -> dict[str, Any] | None:
    waiting = frame.waiting
    match waiting:
        case Admission(entry):
            # The caller, `limits.with_places`, replaces `entry` by the execution's place in the
            # limit's queue.
            return {"kind": "limit", "entry": entry}
        case Attempt():
            return _task(state, frame, waiting)
        case Awaiting():
            return _awaited(state, frame, waiting, token_of)
        case Timer(_, due_ms) | Delay(_, due_ms):
            return {"kind": "timer", **_until(state, frame, due_ms)}
        case Lanes():
            # Each branch or iteration has a frame, which shows its own wait.
            return None
        case Entered() | Exited() | FailedState() | ChildExecutions():
            return {"kind": "next step"}
        case _:
            assert_never(waiting)


def _task(state: Execution, frame: Frame, attempt: Attempt) -> dict[str, Any]:
    if is_told(attempt.target):
        return _child(state, frame, attempt)
    started = started_by(attempt.target)
    if attempt.is_unknown and started is not None:
        return _unknown_workflow(started)
    if attempt.is_unknown:
        return {
            "kind": "unknown_task",
            "task": attempt.target,
            "reason": f"no worker knows a task named {attempt.target!r}",
        }
    task = {"kind": "task", "task": attempt.target, "attempt": attempt.attempt}
    if attempt.queued is not None:
        # The caller, `limits.with_places`, replaces `entry` by the attempt's place in the limit's
        # queue.
        return {**task, "kind": "limit", "entry": attempt.entry}
    if attempt.polls:
        return {**task, "kind": "condition", **_polled(attempt)}
    # `pools.with_workers` needs `entry` to find the heartbeat.
    beats = {"entry": attempt.entry} if attempt.heartbeat_seconds is not None else {}
    return {**task, **_retry(attempt), **beats}


def _polled(attempt: Attempt) -> dict[str, Any]:
    """Return how often the task has returned no value so far, and the time of its next call."""
    assert attempt.polled_ms is not None
    last, following = iso_time(attempt.polled_ms), iso_time(attempt.due_ms)
    return {"polls": attempt.polls, "polled_at": last, "next_poll_at": following}


def _awaited(
    state: Execution,
    frame: Frame,
    awaiting: Awaiting,
    token_of: Callable[[Execution, Frame], str],
) -> dict[str, Any]:
    if is_told(awaiting.target):
        return _child(state, frame, awaiting)
    until = _until(state, frame, awaiting.due_ms)
    if awaiting.kind == "event":
        event = {"event": awaiting.event_name, "key": awaiting.event_key}
        return {"kind": "event", **event, **until}
    if awaiting.target.startswith(POOL):
        # `pools.with_workers` needs `entry` to find the worker that took the task.
        pool = {"pool": awaiting.target.removeprefix(POOL), "task": awaiting.text("task")}
        place = {"attempt": awaiting.attempt, "entry": awaiting.entry}
        return {"kind": "pool", **pool, **place, "begun": awaiting.is_begun, **until}
    if awaiting.target.startswith(CONTAINER):
        on = {"on": awaiting.target.removeprefix(CONTAINER), "task": awaiting.text("task")}
        place = {"attempt": awaiting.attempt, "entry": awaiting.entry}
        return {"kind": "container", **on, **place, **until}
    if is_request(awaiting.kind, awaiting.target):
        asked = {"request": awaiting.text("name"), "key": awaiting.text("key")}
        return {"kind": "request", **asked, **until}
    given = dict(awaiting.arguments) if isinstance(awaiting.arguments, dict) else {}
    if awaiting.kind == "ask":
        given["question"] = question_id(state.run, awaiting.entry, awaiting.attempt)
    return {"kind": awaiting.kind, **given, "token": token_of(state, frame), **until}


def _child(state: Execution, frame: Frame, waiting: Attempt | Awaiting) -> dict[str, Any]:
    """Describe a wait for another execution. Its id is known even before it starts."""
    name = name_in(waiting.target)
    if isinstance(waiting, Attempt) and waiting.is_unknown:
        return _unknown_workflow(str(name))
    what = {"kind": "execution"} if name is None else {"kind": "workflow", "workflow": name}
    run = child_run(state.run, waiting.entry, waiting.attempt)
    if isinstance(waiting, Attempt):
        return {**what, "execution": run, **_retry(waiting)}
    return {**what, "execution": run, **_until(state, frame, waiting.due_ms)}


def _unknown_workflow(name: str) -> dict[str, str]:
    reason = f"no worker knows a workflow named {name!r}"
    return {"kind": "unknown_workflow", "workflow": name, "reason": reason}


def _retry(attempt: Attempt) -> dict[str, str]:
    return {"retry_at": iso_time(attempt.due_ms)} if attempt.claim is None else {}


def _until(state: Execution, frame: Frame, due_ms: int | None) -> dict[str, str]:
    """Return the end of the wait, or the deadline of a block around it if that is earlier."""
    dues = [due_ms, *_deadlines_ms(state, frame)]
    first = min((due for due in dues if due is not None), default=None)
    return {} if first is None else {"until": iso_time(first)}


def _deadlines_ms(state: Execution, frame: Frame) -> Iterator[int]:
    """Yield the deadlines of the blocks around a frame. A cancelled frame has none, because it is
    being undone.
    """
    around: Frame | None = frame
    while around is not None and around.cancelled is None:
        yield from (deadline.due_ms for deadline in around.deadlines)
        around = None if around.owner is None else state.frames.get(around.owner)


def last_failure(records: Iterable[Record]) -> dict[str, Any] | None:
    """Return the newest failed attempt with a traceback among the records."""
    for record in reversed([*records]):
        for event in reversed(record.events):
            if "traceback" in event.holdfast:
                return {
                    "task": str(event.details.get("resource", "")).partition(":")[2],
                    "at": iso_time(event.at_ms),
                    **{
                        key: event.details[key]
                        for key in ("error", "cause")
                        if key in event.details
                    },
                    "traceback": event.holdfast["traceback"],
                }
    return None


# -- history ---------------------------------------------------------------------------------------


def history(
    records: Iterable[Record], after: EventPlace = BEGINNING
) -> Iterator[tuple[EventPlace, dict[str, Any]]]:
    """Yield every event after the place `after`, and its place. Events that AWS does not have are
    included.
    """
    for record in records:
        for number, event in enumerate(record.events):
            if (record.sequence, number) > after:
                shown = {**_event(event), "record": record.sequence}
                yield (record.sequence, number), shown


def sent_bytes(shown: Any) -> int:
    """Return an upper bound of the size in Lambda's response, in which the JSON body is text inside
    of JSON.
    """
    return len(json.dumps(json.dumps(shown)))


def fitting(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event without fields that make it too large for a response. `omitted` names
    them.
    """
    if sent_bytes(event) <= PAGE_BYTES_MAX:
        return event
    shown, omitted = dict(event), list[str]()
    for part, fields in event.items():
        if isinstance(fields, dict):
            large = [key for key, value in fields.items() if sent_bytes(value) > SHOWN_BYTES_MAX]
            shown[part] = {key: value for key, value in fields.items() if key not in large}
            omitted += large
    return {**shown, "omitted": omitted}


def _event(event: Event) -> dict[str, Any]:
    shown: dict[str, Any] = {"timestamp": iso_time(event.at_ms), "type": event.type}
    if event.id:
        shown = {"id": event.id, "previousEventId": event.previous, **shown}
    if event.details:
        shown[details_name(event.type)] = details_of(event)
    return {**shown, "holdfast": dict(event.holdfast)} if event.holdfast else shown


def details_of(event: Event) -> dict[str, Any]:
    """Return AWS's details of the event: data as JSON text, other fields unchanged."""
    return {key: _text(key, value) for key, value in event.details.items()}


def shown_details(event: Event, *, has_data: bool) -> dict[str, Any]:
    """Return the details with the members that say that no data was cut. With `has_data` False the
    data is left out.
    """
    details = {
        name: member
        for name, member in details_of(event).items()
        if has_data or name not in DATA_FLAGS
    }
    flags = {
        flag: {"truncated": False}
        for name, flag in DATA_FLAGS.items()
        if flag is not None and name in details
    }
    return {**details, **flags}


def details_name(event_type: str) -> str:
    """Return the name of the details in AWS's form: stateEnteredEventDetails for TaskStateEntered,
    otherwise the name made from the type.
    """
    own = f"{event_type[0].lower()}{event_type[1:]}"
    shared = (name for ending, name in _DETAILS.items() if event_type.endswith(ending))
    return f"{next(shared, own)}EventDetails"


def _text(key: str, value: Any) -> Any:
    if key == "assignedVariables":
        return {name: json_text(item) for name, item in value.items()}
    return json_text(value) if key in _TEXTS else value


def without_secrets(value: Json) -> Json:
    """Return the value with text such as `<secret 43 bytes>` in place of each secret of a
    workflow.
    """
    shown: Json = hidden(value)
    return shown


# -- lists -----------------------------------------------------------------------------------------


def listed(entry: ListEntry, attributes: Mapping[str, Attribute] | None = None) -> dict[str, Any]:
    """Return one row of `holdfast list`. `attributes` are the search attributes, if they were
    read.
    """
    row = {
        "execution": entry.run,
        "name": entry.name,
        "workflow": entry.workflow,
        "status": entry.status,
        "started": iso_time(entry.started_ms),
        "started_ms": entry.started_ms,
    }
    if attributes:
        row["attributes"] = shown_attributes(attributes)
    if entry.stopped_ms is not None:
        row["stopped"] = iso_time(entry.stopped_ms)
    if entry.paused_ms is not None:
        row["paused"] = {"since": iso_time(entry.paused_ms), "reason": entry.paused_reason}
    if entry.waits:
        row["waits"] = [_subject(wait) for wait in entry.waits]
    return row if entry.error is None else {**row, "error": entry.error}


def shown_attributes(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    return {name: one.value for name, one in attributes.items()}


def _subject(wait: Subject) -> dict[str, str]:
    shown = {"kind": wait.kind.value, "target": wait.target, "since": iso_time(wait.since_ms)}
    return shown if wait.error is None else {**shown, "error": wait.error}


def kept_event(name: str, key: str, item: Item, type_name: str | None) -> dict[str, Any]:
    """Return a stored event as it is shown to an operator. `execution`, if present, is the only
    execution that may use the event.
    """
    row = {
        "event": inbox.event_id(item),
        "name": name,
        "key": key,
        "at": iso_time(int(item["at"])),
        "expires": iso_time(int(item["expires"])),
    }
    typed = {} if type_name is None else {"type": type_name}
    if "error" in item:
        typed["error"] = str(item["error"])
    if inbox.ADDRESSEE in item and inbox.CLAIMED not in item:
        return {**row, **typed, "execution": str(item[inbox.ADDRESSEE])}
    return {**row, **typed}


def refused_event(row: Item) -> dict[str, Any]:
    return {
        "event": str(row["id"]),
        "name": str(row["name"]),
        "key": str(row["key"]),
        "at": iso_time(int(str(row["sk"]).partition("#")[0])),
        "expires": iso_time(int(row["expires"])),
        "refused": str(row["refused"]),
    }
