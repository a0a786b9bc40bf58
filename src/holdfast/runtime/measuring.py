"""Measurements of executions, computed from the events of a commit.

All the data is in memory when a worker has stored a record, or when the sweeper has loaded a log,
so a measurement costs no call. `Measure` adds values up; one line is written at the end of the
invocation (`aws/telemetry.py`).

    scheduler lag    an attempt's lease begins      minus the time at which the attempt was due
                     record 0 is decided            minus the time of the start request
    timer lag        the event WaitStateExited      minus the due time of the timer
    retries          an attempt after a failure, by task and by the name of its error
    leases expired   a worker has taken over the attempt of a crashed worker
    operator actions retry, skip, pause, resume, priority, fork and migrate, by their events

A record whose commit is refused is not measured. The record that was stored instead is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast import resources
from holdfast.core.advance import Transition
from holdfast.core.attempt_facts import WORKER_LOST
from holdfast.core.diagnosis import diagnose
from holdfast.core.events import DURABLE_EVENTS, TERMINAL_EVENTS, Event
from holdfast.core.state import ROOT, Attempt, Execution, Frame, Timer, WaitingFor
from holdfast.core.subjects import Subject, WaitKind, subjects_of
from holdfast.limits import OVERDUE_SECONDS
from holdfast.runtime.effects import Labels, Measure, NoResult

_ACTIONS: Final = {
    "ExecutionRedriven": "retry",
    "StepSkipped": "skip",
    "Paused": "pause",
    "Resumed": "resume",
    "PriorityChanged": "priority",
    "ExecutionForked": "fork",
    "Migrated": "migrate",
}
#: An error name is logged only if it has this form: that of a Python class or of a name in a
#: definition. A Fail state may compute the name from data of the execution, which must not be
#: logged; such a text rarely has this form.
_ERROR_NAME: Final = re.compile(r"[A-Za-z_][\w.]{0,99}")
_NO_NAME: Final = "(not a name)"
_TASK_PREFIX: Final = "task:"
_ROLE_PREFIX: Final = "role:"
#: The events whose delay is measured.
_TIMED: Final = ("WaitStateExited", "Claimed")
_FAILURES: Final = ("ExecutionFailed", "ExecutionTimedOut")


def labels_of(state: Execution) -> Labels:
    """Return the labels of the execution: its workflow, or its state machine."""
    if state.origin is None:
        return Labels(workflow=state.workflow)
    return Labels(state_machine=state.workflow)


def begun(state: Execution, asked_ms: int, now_ms: int) -> NoResult:
    """Measure the start of an execution whose start was requested at `asked_ms`."""
    labels = labels_of(state)
    yield Measure(resources.METRIC_EXECUTIONS_STARTED, 1, labels=labels)
    yield _seconds(resources.METRIC_SCHEDULER_LAG, now_ms - asked_ms, labels)


def committed(before: Execution | None, step: Transition) -> NoResult:
    """Measure a record that was stored. `before` is the state before it."""
    labels = labels_of(step.state)
    events = _own_events(step.events)
    durable = sum(event.type in DURABLE_EVENTS for event in events)
    if durable:
        yield Measure(resources.METRIC_DURABLE_STEPS, durable, labels=labels)
    yield from _failures(events, labels)
    for event in events:
        if event.type in _ACTIONS:
            acted = labels._replace(action=_ACTIONS[event.type])
            yield Measure(resources.METRIC_OPERATOR_ACTIONS, 1, labels=acted)
        if event.type in _TIMED:
            frame = _frame_before(before, event)
            if frame is not None:
                yield from _since(frame.waiting, event, labels)


def conflict(state: Execution) -> Measure:
    """Return the measurement of a refused commit: another worker committed first."""
    return Measure(resources.METRIC_APPEND_CONFLICTS, 1, labels=labels_of(state))


def checked(state: Execution, now_ms: int) -> NoResult:
    """Measure an open execution that the sweeper has loaded: its longest wait, and whether it is
    overdue.
    """
    labels = labels_of(state)
    if any(one.since_ms + OVERDUE_SECONDS * 1_000 < now_ms for one in diagnose(state, now_ms)):
        yield Measure(resources.METRIC_EXECUTIONS_STUCK, 1, labels=labels)
    for oldest in subjects_of(state)[:1]:
        waited = labels._replace(wait=oldest.kind, target=_target(oldest))
        yield _seconds(resources.METRIC_OLDEST_WAIT, now_ms - oldest.since_ms, waited)


def _target(subject: Subject) -> str:
    """Return the target, except where it may be the name of a person."""
    is_person = subject.kind is WaitKind.ASK and not subject.target.startswith(_ROLE_PREFIX)
    return "" if is_person else subject.target


def _own_events(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events without those that a fork has copied: they were measured in the original
    execution.
    """
    forked = [number for number, event in enumerate(events) if event.type == "ExecutionForked"]
    return events[forked[-1] :] if forked else events


def _failures(events: Sequence[Event], labels: Labels) -> NoResult:
    """Measure the retries and the end of the execution, with the task and the error that caused
    them.
    """
    if not any(map(_is_retry_or_end, events)):
        return
    errors: dict[str, str] = {}
    tasks: dict[str, str] = {}
    last_task = ""
    for event in events:
        frame = event.holdfast.get("frame", ROOT)
        resource = event.details.get("resource")
        if isinstance(resource, str):
            last_task = tasks[frame] = resource.removeprefix(_TASK_PREFIX)
        if event.type in TERMINAL_EVENTS:
            yield Measure(resources.METRIC_EXECUTIONS_ENDED, 1, labels=labels)
            if event.type in _FAILURES:
                failed = labels._replace(task=last_task, error=_error(event))
                yield Measure(resources.METRIC_EXECUTIONS_FAILED, 1, labels=failed)
        elif event.details.get("error"):
            errors[frame] = _error(event)
            if event.details["error"] == WORKER_LOST:
                yield Measure(resources.METRIC_LEASES_EXPIRED, 1, labels=labels)
        elif "retrier" in event.holdfast:
            task, error = tasks.get(frame, ""), errors.get(frame, "")
            retried = labels._replace(task=task, error=error)
            yield Measure(resources.METRIC_TASK_RETRIES, 1, labels=retried)


def _is_retry_or_end(event: Event) -> bool:
    has_error = "error" in event.details or "retrier" in event.holdfast
    return has_error or event.type in TERMINAL_EVENTS


def _error(event: Event) -> str:
    found = event.details.get("error") or ""
    if event.type.endswith("TimedOut") and not found:
        return "States.Timeout"
    return found if _ERROR_NAME.fullmatch(found) else _NO_NAME


def _frame_before(before: Execution | None, event: Event) -> Frame | None:
    return None if before is None else before.frames.get(event.holdfast.get("frame", ROOT))


def _since(waiting: WaitingFor, event: Event, labels: Labels) -> Iterator[Measure]:
    """Yield how late an event came, if the frame's wait had a due time for it."""
    match waiting:
        case Timer(_, due_ms) if event.type == "WaitStateExited":
            yield _seconds(resources.METRIC_TIMER_LAG, event.at_ms - due_ms, labels)
        case Attempt() if event.type == "Claimed":
            if event.holdfast["takeovers"] > waiting.takeovers:
                yield Measure(resources.METRIC_LEASES_EXPIRED, 1, labels=labels)
            # Measure only the delay of a new attempt. An attempt with a lease began in time, and
            # one that waits at a limit has a metric of its own.
            elif waiting.claim is None and waiting.queued is None:
                yield _seconds(resources.METRIC_SCHEDULER_LAG, event.at_ms - waiting.due_ms, labels)


def _seconds(name: str, milliseconds: int, labels: Labels) -> Measure:
    return Measure(name, max(0, milliseconds) / 1_000, "Seconds", labels)
