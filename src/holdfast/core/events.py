"""Events: the history of an execution, in AWS's event names, fields, ids and predecessors.

`details` are AWS's own, with values as JSON instead of text. `holdfast` has the data that AWS does
not record: due time, attempt, claim, lane. Events of our own have no id; the AWS view leaves both
out. A record stores events in order, and ids are dense, so ids are counted and not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from holdfast.asl.program import TaskKind

#: Events of Holdfast that AWS does not have: they get no number and no previous event.
OWN_EVENTS: Final = frozenset(
    {"Opened", "Claimed", "TimerSet", "RetryDelayed", "TaskUnknown", "HeartbeatSeen"}
    | {"ItemsAsked", "ChildrenStarted", "ChildEnded", "ResultsAsked"}
    | {"Stopping", "Closing", "Cancelled", "UndoStarted", "Unwound", "LaneFailed", "Polled"}
    | {"DeadlineSet", "DeadlinePassed", "ChildrenStopped"}
    | {"Paused", "Resumed", "PriorityChanged", "StepSkipped", "ExecutionForked", "Published"}
    | {"Noted", "Migrated"}
    | {"ContinuedAsNew"}
    | {"AttemptQueued", "ExecutionQueued", "ExecutionAdmitted"}
)
#: The prefix of a task's event names, by its kind. The prefix of all other kinds is "Task".
TASK_EVENTS: Final[Mapping[TaskKind, str]] = {"lambda": "LambdaFunction", "activity": "Activity"}
#: A durable step: a committed result of an attempt, an event or answer applied, a timer fired.
DURABLE_EVENTS: Final = frozenset(
    {"WaitStateExited"}
    | {
        f"{task}{result}"
        for task in ("Task", "LambdaFunction", "Activity")
        for result in ("Succeeded", "Failed", "TimedOut")
    }
)
TERMINAL_EVENTS: Final = frozenset(
    {"ExecutionSucceeded", "ExecutionFailed", "ExecutionTimedOut", "ExecutionAborted"}
)


class Event(NamedTuple):
    """One event of the history. `id` is 0 for an event that AWS does not have. `previous` is AWS's
    previousEventId.

    A named tuple, because two are made for each transition and a dataclass takes twice as long.
    """

    type: str
    id: int
    previous: int
    at_ms: int
    details: Mapping[str, Any]
    holdfast: Mapping[str, Any]
