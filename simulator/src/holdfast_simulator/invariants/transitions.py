"""I2: which event may follow which on one line of control, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from holdfast.core.events import TASK_EVENTS, Event
from holdfast.core.state import ROOT, Exited, FailedState
from holdfast.limits import PURE_STATES_PER_RECORD_MAX
from holdfast_simulator.histories import StoredHistory

#: The state of a line before its first event.
_NOTHING: Final = "nothing"
#: Events of the execution, or of a line, that fit any state.
_ANYWHERE: Final = frozenset(
    {"Opened", "Stopping", "ChildrenStopped", "Cancelled"}
    | {"Paused", "Resumed", "PriorityChanged", "Migrated", "ExecutionForked", "MapRunUpdated"}
)
#: A line without further events: it is over, or its lanes are at work.
_ABORTED: Final = {"MapIterationAborted", "Unwound", "UndoStarted", "DeadlinePassed"}
#: Events that may end any waiting or failed line: the line is cancelled, or the execution ends.
_CUT: Final = {"aborted", *_ABORTED, "end of the execution", "entered", "LaneFailed"}
_FAILED: Final = {"scheduled", "RetryDelayed", "exited", "failed", "MapIterationFailed", *_CUT}

#: The ends of reading a distributed Map's items, or of writing its results.
_CLAIMED_OF_A_MAP: Final = {"ChildrenStarted", "MapRunSucceeded"}

#: Several event names have the same meaning on a line: this maps each to the common name.
_KINDS: Final[Mapping[str, str]] = {
    **{
        f"{task}{what}": kind
        for task in ("Task", *TASK_EVENTS.values())
        for what, kind in {
            "Scheduled": "scheduled",
            "Started": "started",
            "Succeeded": "succeeded",
            "Failed": "failed",
            "TimedOut": "failed",
        }.items()
    },
    "ActivityStarted": "started",
    "ActivityScheduleFailed": "failed",
    "TaskSubmitFailed": "failed",
    "EvaluationFailed": "failed",
    "MapRunFailed": "failed",
    "MapRunAborted": "aborted",
    "ParallelStateStarted": "lanes",
    "MapStateStarted": "lanes",
    "ParallelStateSucceeded": "joined",
    "MapStateSucceeded": "joined",
    "ParallelStateFailed": "failed",
    "MapStateFailed": "failed",
    "ExecutionSucceeded": "end of the execution",
    "ExecutionFailed": "end of the execution",
    "ExecutionAborted": "end of the execution",
    "ExecutionTimedOut": "end of the execution",
}

#: The allowed next events, by the previous one.
_MAY_FOLLOW: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset(following)
    for kind, following in {
        _NOTHING: {"ExecutionStarted", "entered", "MapIterationStarted"},
        "ExecutionStarted": {"entered", "end of the execution"},
        "MapIterationStarted": {"entered", "failed", "MapIterationFailed", *_CUT},
        "entered": {
            "StepSkipped",
            "Published",
            "Noted",
            "exited",
            "scheduled",
            "lanes",
            "TimerSet",
            "DeadlineSet",
            *_FAILED,
        },
        "Published": {"Published", "Noted", "exited", *_FAILED},
        "Noted": {"Noted", "exited", *_FAILED},
        "DeadlineSet": {
            "Published",
            "Noted",
            "exited",
            "scheduled",
            "lanes",
            "TimerSet",
            "DeadlineSet",
            *_FAILED,
        },
        # Attempts.
        "scheduled": {
            "StepSkipped",
            "started",
            "succeeded",
            "Claimed",
            "TaskUnknown",
            "ConditionUnmet",
            *_FAILED,
        },
        "ConditionUnmet": {
            "StepSkipped",
            "started",
            "succeeded",
            "Claimed",
            "TaskUnknown",
            "ConditionUnmet",
            *_FAILED,
        },
        "Claimed": {
            "StepSkipped",
            "started",
            "succeeded",
            "Claimed",
            "ConditionUnmet",
            "TaskUnknown",
            *_CLAIMED_OF_A_MAP,
            *_FAILED,
        },
        "TaskUnknown": {
            "StepSkipped",
            "started",
            "succeeded",
            "Claimed",
            "ConditionUnmet",
            *_FAILED,
        },
        "ContinuedAsNew": {"entered"},
        "started": {
            "ContinuedAsNew",
            "StepSkipped",
            "succeeded",
            "TaskSubmitted",
            "HeartbeatSeen",
            "started",
            *_FAILED,
        },
        "TaskSubmitted": {"StepSkipped", "succeeded", "Polled", "HeartbeatSeen", *_FAILED},
        "Polled": {"StepSkipped", "succeeded", "Polled", "HeartbeatSeen", *_FAILED},
        "HeartbeatSeen": {
            "StepSkipped",
            "succeeded",
            "Polled",
            "HeartbeatSeen",
            "started",
            *_FAILED,
        },
        "succeeded": {"exited", *_FAILED},
        "StepSkipped": {"exited", *_FAILED},
        "failed": _FAILED,
        "RetryDelayed": {
            "StepSkipped",
            "entered",
            "exited",
            "scheduled",
            "lanes",
            "DeadlineSet",
            *_FAILED,
        },
        # Waits and lanes.
        "TimerSet": {"StepSkipped", "exited", *_FAILED},
        "lanes": {"joined", "Closing", "MapRunStarted", *_FAILED},
        "Closing": {"joined", "Closing", *_FAILED},
        "joined": {"exited", *_FAILED},
        # Distributed Maps.
        "MapRunStarted": {"ItemsAsked", "ChildrenStarted", *_FAILED},
        "ItemsAsked": {"Claimed", "TaskUnknown", "ChildrenStarted", *_FAILED},
        "ChildrenStarted": {"ChildEnded", "ResultsAsked", "MapRunSucceeded", *_FAILED},
        "ChildEnded": {"ChildEnded", "ResultsAsked", "MapRunSucceeded", *_FAILED},
        "ResultsAsked": {"Claimed", "TaskUnknown", "MapRunSucceeded", *_FAILED},
        "MapRunSucceeded": {"joined", *_FAILED},
        "MapRunRedriven": {"ChildEnded", "ResultsAsked", "MapRunSucceeded", *_FAILED},
        # Leaving.
        "exited": {"entered", "MapIterationSucceeded", *_CUT},
        "UndoStarted": {"entered", "UndoStarted", *_ABORTED, "end of the execution"},
        "DeadlinePassed": {"entered", "failed", "MapIterationFailed", *_CUT},
        "aborted": {"MapIterationAborted", "MapIterationFailed", "aborted", *_FAILED},
        "MapIterationFailed": {"LaneFailed", "aborted", *_ABORTED},
        "end of the execution": {"ExecutionRedriven"},
        "ExecutionRedriven": {
            "StepSkipped",
            "Published",
            "Noted",
            "entered",
            "exited",
            "scheduled",
            "lanes",
            "TimerSet",
            "DeadlineSet",
            "MapRunRedriven",
        }
        | _FAILED
        | {"joined", "Closing"},
        # The line is over.
        "MapIterationSucceeded": set(),
        "MapIterationAborted": {"Unwound"},
        "LaneFailed": set(),
        "Unwound": set(),
    }.items()
}


def illegal(history: StoredHistory) -> Iterator[str]:
    """Yield the events of a line that are not allowed after the previous one."""
    last: dict[str, str] = {}
    for event in history.events:
        if event.type in _ANYWHERE:
            continue
        frame, kind = event.holdfast.get("frame", ROOT), _kind_of(event)
        before = last.get(frame, _NOTHING)
        if kind not in _MAY_FOLLOW[before]:
            yield f"{history.run}: {event.type} follows {before} on line {frame!r}"
        if (before, kind) == ("ExecutionRedriven", "DeadlineSet"):
            continue  # The event is of the block around the line: the line has not moved
        last[frame] = kind
        if kind == "ExecutionRedriven":
            last = dict.fromkeys(last, kind)


def _kind_of(event: Event) -> str:
    found = _KINDS.get(event.type)
    if found is not None:
        return found
    for ending, kind in {
        "StateEntered": "entered",
        "StateExited": "exited",
        "StateAborted": "aborted",
    }.items():
        if event.type.endswith(ending):
            return kind
    return event.type


def unsettled(history: StoredHistory) -> Iterator[str]:
    """Check R2: a record contains further events until the execution waits, or until the record is
    full.
    """
    for record, state in zip(history.records, history.states, strict=True):
        if len(record.events) < PURE_STATES_PER_RECORD_MAX and not state.is_ended:
            for frame in state.frames.values():
                if isinstance(frame.waiting, Exited | FailedState):
                    what = f"state {frame.position!r}, which was left"
                    yield f"{history.run}: record {record.sequence} ends in the middle of {what}"
