"""Events: the history of an execution, in AWS's event names, fields, ids and predecessors.

`details` holds AWS's own fields, with values as JSON instead of text. `holdfast` holds the data
that AWS does not record, such as due time, attempt, lease and lane (branch or iteration). Events
that AWS does not have get no id. The view that shows a history as AWS does leaves both out. A
record stores its events in order, and their ids have no gaps, so the ids are counted when a record
is read and are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from holdfast.asl.program import TaskKind

#: Events that Holdfast adds to those of AWS. They get no event number and no previous event, so
#: that the numbers of the other events are as in AWS's histories.
OWN_EVENTS: Final = frozenset(
    {"Opened", "Claimed", "TimerSet", "RetryDelayed", "TaskUnknown", "HeartbeatSeen"}
    | {"ItemsAsked", "ChildrenStarted", "ChildEnded", "ResultsAsked", "MapRunUpdated"}
    | {"Stopping", "Closing", "Cancelled", "UndoStarted", "Unwound", "LaneFailed", "Polled"}
    | {"DeadlineSet", "DeadlinePassed", "ChildrenStopped"}
    | {"Paused", "Resumed", "PriorityChanged", "StepSkipped", "ExecutionForked", "Published"}
    | {"Noted", "Migrated", "ConditionUnmet"}
    | {"ContinuedAsNew"}
    | {"AttemptQueued", "ExecutionQueued", "ExecutionAdmitted"}
)
#: The prefix of the names of a task's events, by the kind of the task. Kinds that are not listed
#: have the prefix "Task".
TASK_EVENTS: Final[Mapping[TaskKind, str]] = {"lambda": "LambdaFunction", "activity": "Activity"}
#: The events that count as a durable step. They are the result of an attempt, an event or answer
#: that was applied, and a timer that fired.
DURABLE_EVENTS: Final = frozenset(
    {"WaitStateExited", "TaskSubmitFailed"}
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

    Each transition creates two events. A named tuple is created in half the time of a dataclass.
    """

    type: str
    id: int
    previous: int
    at_ms: int
    details: Mapping[str, Any]
    holdfast: Mapping[str, Any]
