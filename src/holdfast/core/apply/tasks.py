"""The events of tasks: scheduled, leased ("Claimed"), submitted, ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.asl.program import TaskKind
from holdfast.asl.resources import CONTAINER, REQUEST
from holdfast.core.apply.frames import Apply, begun, counted, frame_of_event, moved, over
from holdfast.core.events import Event
from holdfast.core.retry import poll_seconds
from holdfast.core.state import (
    ATTEMPTED,
    Admission,
    Attempt,
    Awaiting,
    Entered,
    Execution,
    Exited,
    FailedState,
    Lease,
    Queued,
    is_told,
)
from holdfast.errors import HoldfastBug
from holdfast.limits import CLOCK_ERROR_MS

#: The suffix of the resource of a task whose answer arrives after the call, and the kind of that
#: task.
_ANSWERED_LATER: Final[Mapping[str, TaskKind]] = {
    ".waitForTaskToken": "callback",
    ".sync": "sync",
    ".sync:2": "sync",
}


def kind_of(event: Event) -> tuple[TaskKind, str]:
    """Return the kind of a scheduled task and its target (see program.Task)."""
    resource = event.details["resource"]
    if event.type == "LambdaFunctionScheduled":
        return "lambda", resource
    if event.type == "ActivityScheduled":
        return "activity", resource
    service = event.details["resourceType"]
    if service == "holdfast":
        return _own_kind_of(resource)
    for ending, kind in _ANSWERED_LATER.items():
        if resource.endswith(ending):
            return kind, f"{service}:{resource.removesuffix(ending)}"
    return "service", f"{service}:{resource}"


def _own_kind_of(resource: str) -> tuple[TaskKind, str]:
    """Split the resource "task:ship" into its kind `task` and its target `ship`."""
    match resource.partition(":"):
        case "task" | "poll", ":", target:
            return "task", target
        case "pure", ":", target:
            return "pure", target
        case "container", ":", target:
            return "callback", f"{CONTAINER}{target.removesuffix('.waitForTaskToken')}"
        case "workflow", ":", _:
            return "sync", resource
        case "request.waitForTaskToken", "", "":
            return "callback", REQUEST
        case ("start" | "start_later" | "bulk", ":", _):
            return "command", resource
        case ("send" | "send_later" | "again" | "reply" | "stop", "", ""):
            return "command", resource
        case "event.waitForTaskToken", "", "":
            return "event", ""
        case "ask.waitForTaskToken", "", "":
            return "ask", ""
        case "token.waitForTaskToken", "", "":
            return "token", ""
        case _:
            raise HoldfastBug(f"the history schedules an unknown resource {resource!r}")


def _task_scheduled(state: Execution, event: Event) -> Execution:
    own = event.holdfast
    kind, target = kind_of(event)
    waiting: Attempt | Awaiting
    if kind in ATTEMPTED:
        waiting = Attempt(
            entry=own["entry"],
            attempt=own["attempt"],
            kind=kind,
            target=target,
            arguments=_arguments(event),
            timeout_seconds=event.details.get("timeoutInSeconds"),
            due_ms=own.get("due", event.at_ms),
            claim=Lease(*own["claim"]) if "claim" in own else None,
            heartbeat_seconds=event.details.get("heartbeatInSeconds"),
            credentials=event.details.get("taskCredentials", {}).get("roleArn"),
        )
    else:
        waiting = _awaiting(event, kind, target)
    state = state._replace(next_entry=max(state.next_entry, own["entry"] + 1))
    if kind == "sync" and is_told(target):
        state = begun(state, (waiting.entry, waiting.attempt))
    frame = frame_of_event(state, event)
    return moved(state, frame, event, retries=counted(frame, own), waiting=waiting)


def _arguments(event: Event) -> Any:
    details = event.details
    return details["parameters"] if "parameters" in details else details["input"]


def _awaiting(event: Event, kind: TaskKind, target: str) -> Awaiting:
    since_ms = event.holdfast.get("due", event.at_ms)
    timeout = event.details.get("timeoutInSeconds")
    heartbeat = event.details.get("heartbeatInSeconds")
    is_offered = kind == "activity"
    return Awaiting(
        entry=event.holdfast["entry"],
        attempt=event.holdfast["attempt"],
        kind=kind,
        arguments=_arguments(event),
        since_ms=since_ms,
        due_ms=None if is_offered else _due_ms(since_ms, timeout),
        heartbeat_seconds=heartbeat,
        heartbeat_due_ms=None if is_offered else _due_ms(since_ms, heartbeat),
        target=target,
        timeout_seconds=timeout if is_offered else None,
    )


def _due_ms(since_ms: int, seconds: int | None) -> int | None:
    return None if seconds is None else since_ms + seconds * 1_000


def _task_submitted(state: Execution, event: Event) -> Execution:
    """Record that the call has returned and the wait for its answer begins. The time-out still
    counts from the beginning of the call.
    """
    frame = frame_of_event(state, event)
    called = frame.waiting
    assert isinstance(called, Attempt)
    waiting = Awaiting(
        entry=called.entry,
        attempt=called.attempt,
        kind=called.kind,
        arguments=called.arguments,
        since_ms=called.due_ms,
        due_ms=_due_ms(called.due_ms, called.timeout_seconds),
        heartbeat_seconds=called.heartbeat_seconds,
        heartbeat_due_ms=_due_ms(event.at_ms, called.heartbeat_seconds),
        target=called.target,
        submitted=event.details["output"],
        poll_due_ms=_poll_due_ms(called, event),
        credentials=called.credentials,
    )
    return moved(state, frame, event, waiting=waiting)


def _poll_due_ms(called: Attempt, event: Event) -> int | None:
    if called.kind != "sync" or is_told(called.target):
        return None
    return event.at_ms + poll_seconds(0) * 1_000


def _polled(state: Execution, event: Event) -> Execution:
    frame, own = frame_of_event(state, event), event.holdfast
    assert isinstance(frame.waiting, Awaiting)
    waiting = replace(frame.waiting, poll_due_ms=own["due"], polls=own["polls"])
    return moved(state, frame, event, waiting=waiting)


def _condition_unmet(state: Execution, event: Event) -> Execution:
    """Make the next poll an attempt that waits for its time and has no lease yet."""
    frame, own = frame_of_event(state, event), event.holdfast
    polled = frame.waiting
    assert isinstance(polled, Attempt)
    waiting = replace(
        polled,
        attempt=own["attempt"],
        due_ms=own["due"],
        claim=None,
        takeovers=0,
        is_unknown=False,
        queued=None,
        polls=own["polls"],
        polled_ms=event.at_ms,
    )
    return moved(state, frame, event, waiting=waiting, error=None)


def _activity_started(state: Execution, event: Event) -> Execution:
    """Record that a poller has taken an activity's task. The time-out and the heartbeat count from
    this event (AWS docs, Task state).
    """
    frame = frame_of_event(state, event)
    offered = frame.waiting
    assert isinstance(offered, Awaiting)
    waiting = replace(
        offered,
        is_begun=True,
        # A snapshot of an earlier release has the due time of the wait, counted from its schedule,
        # and no `timeout_seconds`.
        due_ms=offered.due_ms or _due_ms(event.at_ms, offered.timeout_seconds),
        heartbeat_due_ms=_due_ms(event.at_ms, offered.heartbeat_seconds),
    )
    return moved(state, frame, event, waiting=waiting)


def _task_started(state: Execution, event: Event) -> Execution:
    return moved(state, frame_of_event(state, event), event)


def _task_succeeded(state: Execution, event: Event) -> Execution:
    state = _with_used_event(state, event)
    frame = frame_of_event(state, event)
    if isinstance(frame.waiting, Awaiting):
        state = over(state, (frame.waiting.entry, frame.waiting.attempt))
    return moved(state, frame, event, waiting=Exited())


def _with_used_event(state: Execution, event: Event) -> Execution:
    """Note the id of the event that has ended a wait, if an event has."""
    if "event" not in event.holdfast:
        return state
    # Keep the ids of events until some time after they expire. Otherwise a host whose clock is
    # behind could accept the same event a second time.
    over_ms, used = event.at_ms - 2 * CLOCK_ERROR_MS, state.used_events
    # Most events expire in the order of their use. Test the others when the first one expires: an
    # execution with thousands of events would otherwise test all of them at each one.
    if next(iter(used.values()), over_ms) <= over_ms:
        used = {key: expiry for key, expiry in used.items() if expiry > over_ms}
    used = {**used, event.holdfast["event"]: event.holdfast["expires"]}
    return state._replace(used_events=used)


def failed(state: Execution, event: Event) -> Execution:
    state = _with_used_event(state, event)
    frame = frame_of_event(state, event)
    waiting = FailedState(None, 0)
    if isinstance(frame.waiting, Attempt | Awaiting):
        waiting = FailedState(frame.waiting.entry, frame.waiting.attempt)
    if event.type == "TaskFailed" and isinstance(frame.waiting, Awaiting):
        # This event says that the child has ended, so no stop is sent to it later. A time-out does
        # not say so: the child may still run. A failed call does not either, because its worker may
        # have started the child before it crashed.
        state = over(state, (frame.waiting.entry, frame.waiting.attempt))
    return moved(state, frame, event, waiting=waiting, error=event.details.get("error"))


def _claimed(state: Execution, event: Event) -> Execution:
    frame = frame_of_event(state, event)
    assert isinstance(frame.waiting, Attempt)
    waiting = replace(
        frame.waiting,
        claim=Lease(*event.holdfast["claim"]),
        takeovers=event.holdfast["takeovers"],
        is_unknown=False,
        queued=None,
    )
    return moved(state, frame, event, waiting=waiting)


def _task_unknown(state: Execution, event: Event) -> Execution:
    frame = frame_of_event(state, event)
    assert isinstance(frame.waiting, Attempt)
    waiting = replace(frame.waiting, claim=None, is_unknown=True)
    return moved(state, frame, event, waiting=waiting)


def _queued(event: Event) -> Queued:
    own = event.holdfast
    return Queued(
        gate=own["gate"],
        since_ms=own.get("since", event.at_ms),
        fair=own.get("fair", ""),
        kept=tuple((gate, owner) for gate, owner in own.get("kept", ())),
        is_front=own.get("front", False),
    )


def _execution_queued(state: Execution, event: Event) -> Execution:
    entry = event.holdfast["entry"]
    state = state._replace(next_entry=max(state.next_entry, entry + 1))
    waiting = Admission(entry, _queued(event))
    return moved(state, frame_of_event(state, event), event, waiting=waiting)


def _execution_admitted(state: Execution, event: Event) -> Execution:
    return moved(state, frame_of_event(state, event), event, waiting=Entered())


def _attempt_queued(state: Execution, event: Event) -> Execution:
    frame = frame_of_event(state, event)
    assert isinstance(frame.waiting, Attempt)
    queued = _queued(event)
    waiting = replace(frame.waiting, claim=None, is_unknown=False, queued=queued)
    return moved(state, frame, event, waiting=waiting)


def _heartbeat_seen(state: Execution, event: Event) -> Execution:
    frame = frame_of_event(state, event)
    assert isinstance(frame.waiting, Awaiting)
    assert frame.waiting.heartbeat_seconds is not None
    due_ms = event.holdfast["beat"] + frame.waiting.heartbeat_seconds * 1_000
    return moved(state, frame, event, waiting=replace(frame.waiting, heartbeat_due_ms=due_ms))


HANDLERS: Final[Mapping[str, Apply]] = {
    **{
        f"{task}{name}": handler
        for task in ("Task", "LambdaFunction", "Activity")
        for name, handler in {
            "Scheduled": _task_scheduled,
            "Started": _task_started,
            "Succeeded": _task_succeeded,
            "Failed": failed,
            "TimedOut": failed,
        }.items()
    },
    "TaskSubmitted": _task_submitted,
    "Polled": _polled,
    "ConditionUnmet": _condition_unmet,
    "ActivityStarted": _activity_started,
    "Claimed": _claimed,
    "TaskUnknown": _task_unknown,
    "AttemptQueued": _attempt_queued,
    "ExecutionQueued": _execution_queued,
    "ExecutionAdmitted": _execution_admitted,
    "HeartbeatSeen": _heartbeat_seen,
}
