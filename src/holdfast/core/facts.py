"""Facts: the input of the core from outside the log, offered by the worker that observed it.

A fact is offered, not imposed: one that does not fit the state (its entry was closed, its attempt
is not the current one) leaves no trace. That is what makes it safe to offer it again after a lost
race.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.asl.program import Json, Program
from holdfast.core.events import Event
from holdfast.core.state import (
    PRIORITY_DEFAULT,
    ChildNumber,
    ChildResult,
    ForkOrigin,
    Lease,
    MachineOrigin,
    Parent,
    PauseTimers,
    Queued,
)
from holdfast.errors import HoldfastBug


@dataclass(frozen=True, slots=True)
class Started:
    """The start message: every worker reads the same values in it.

    `refused`: a limit of the workflow or a pause did not let the execution begin.
    """

    run: str
    name: str | None
    workflow: str
    input: Json
    started_ms: int
    origin: MachineOrigin | None = None
    parent: Parent | None = None
    priority: int = PRIORITY_DEFAULT
    refused: Refused | None = None


@dataclass(frozen=True, slots=True)
class Renewed:
    """The workflow goes on as new: the newest definition, and the input for it."""

    entry: int
    attempt: int
    program: Program
    input: Json


@dataclass(frozen=True, slots=True)
class Forked:
    """The start message of an execution that begins with the history of another one.

    `events`: those of the origin, up to the one with which it entered the state. `data`: the input
    in place of the origin's, or None. `variables` replace those of the origin.
    """

    started: Started
    events: tuple[Event, ...]
    of: ForkOrigin
    data: tuple[Json] | None
    variables: Mapping[str, Json]
    reason: str
    by: str

    @property
    def input(self) -> Json:
        """The input of the new execution. An origin that is a fork may have had its own."""
        if self.data is not None:
            return self.data[0]
        given = [
            event.details["input"]
            for event in self.events
            if event.type in {"ExecutionStarted", "ExecutionForked"} and "input" in event.details
        ]
        last: Json = given[-1]
        return last


@dataclass(frozen=True, slots=True)
class Succeeded:
    """An attempt's result, or the answer to a callback or a person's task. `by`: the author of an
    answer, "" for none.
    """

    entry: int
    attempt: int
    output: Json
    by: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The call of a task has returned, and its answer arrives later (callback or job)."""

    entry: int
    attempt: int
    output: Json


@dataclass(frozen=True, slots=True)
class ActivityStarted:
    """A poller has taken an activity's task. `worker` is the name that the poller gave."""

    entry: int
    attempt: int
    worker: str | None


@dataclass(frozen=True, slots=True)
class ChildEnded:
    """An execution that is one lane of a distributed Map has reported its end to the Map."""

    entry: int
    lane: int
    result: ChildResult


@dataclass(frozen=True, slots=True)
class Polled:
    """A worker polled a job that has not ended. `number` counts the polls from 0."""

    entry: int
    attempt: int
    number: int


@dataclass(frozen=True, slots=True)
class FailedWith:
    """An attempt's error. `traceback`: the author's frames, which only the history shows."""

    entry: int
    attempt: int
    error: str | None
    cause: str | None
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The worker that runs the attempt saw the attempt's time-out pass."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class EventReceived:
    entry: int
    event_id: str
    data: Json
    expires_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatSeen:
    entry: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: every event that is due by `now_ms` less the clock error happens."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A worker takes over the lease of an attempt whose worker is lost or, with `is_handed`, handed
    the attempt over.
    """

    entry: int
    attempt: int
    is_handed: bool = False


@dataclass(frozen=True, slots=True)
class TaskUnknown:
    """The worker's code has no function of the attempt's name."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A limit did not let the attempt begin, or its dependency asked to be called later: the
    attempt waits at the gate that `queued` names. It keeps its number and counts no retry.
    Attempt 0 is an execution that has not begun.

    `reason` and `by` are those of the operator whose pause holds the attempt back; only the history
    shows them.
    """

    entry: int
    attempt: int
    queued: Queued
    reason: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Granted:
    """The gate `gate` has let a waiting attempt begin: the worker takes its lease."""

    entry: int
    attempt: int
    gate: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Control message: end as ABORTED. `control_id` orders control messages and makes each count
    once.

    `by_parent`: the parent execution has stopped waiting. `now`: the execution ends without further
    undo steps.
    """

    control_id: str
    error: str | None
    cause: str | None
    by_parent: bool = False
    now: bool = False


@dataclass(frozen=True, slots=True)
class RedriveRequested:
    """Control message: an ended execution that has not succeeded continues where it stopped.

    `reason` and `by`: the reason, and the verified identity of the caller; only the history shows
    them.
    """

    control_id: str
    reason: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class PauseRequested:
    """Control message: nothing new begins until a resume. `by` is the operator's name as the client
    gave it; `timers` as in `state.Pause`.
    """

    control_id: str
    reason: str
    by: str
    timers: PauseTimers = "freeze"


@dataclass(frozen=True, slots=True)
class ResumeRequested:
    """Control message: a paused execution continues."""

    control_id: str
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class PriorityRequested:
    """Control message: the execution gets another priority, from 0, the first, to 9. Attempts that
    wait at a limit change their place in its queue.
    """

    control_id: str
    priority: int
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class SkipRequested:
    """Control message: an operator gives the result of a step that is open, or that has failed and
    ended its execution.

    `frame` and `entered_event` name one visit of a state: a loop that enters the same state again
    has another event. `output` is None for a timer, which has no result.
    """

    control_id: str
    frame: str
    entered_event: int
    output: Json
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class MigrateRequested:
    """Control message: the execution goes on with another definition, from where it stands.

    `source` and `target` are the hashes of the definitions. `visits`: each frame, and the event
    that entered its state, when the move was proven. `plan` says how the state is carried over
    (`migration/model.py`). `program`: of the target; the worker adds it.
    """

    control_id: str
    source: str
    target: str
    visits: Mapping[str, int]
    plan: Mapping[str, Any]
    reason: str
    by: str
    program: Program | None = None


@dataclass(frozen=True, slots=True)
class ChildrenStopped:
    """A worker has sent stops to children that no wait needs."""

    children: tuple[ChildNumber, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """The execution is watched and listed from the record `sequence` on; no message guards it.

    A later one moves its place in the list to a younger record.
    """

    sequence: int


Fact: TypeAlias = (
    Started
    | Forked
    | Succeeded
    | Submitted
    | Renewed
    | ActivityStarted
    | ChildEnded
    | Polled
    | FailedWith
    | TimedOut
    | EventReceived
    | HeartbeatSeen
    | Tick
    | TakenOver
    | TaskUnknown
    | Refused
    | Granted
    | StopRequested
    | RedriveRequested
    | PauseRequested
    | ResumeRequested
    | PriorityRequested
    | SkipRequested
    | MigrateRequested
    | ChildrenStopped
    | Opened
)

#: The requests that an operator, or a parent execution, stores in the inbox.
Control: TypeAlias = (
    StopRequested
    | RedriveRequested
    | PauseRequested
    | ResumeRequested
    | PriorityRequested
    | SkipRequested
    | MigrateRequested
)


def _no_token(entry: int, attempt: int) -> str:
    raise HoldfastBug(f"a token was asked for, of {entry}.{attempt}, by whom none can be made")


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """Time, random numbers, leases and tokens of one decision.

    `draw()` is in [0, 1), a function of run and record. `claim` makes the lease of an attempt that
    is scheduled now, from its time-out in seconds; None leaves the attempt to another delivery.
    `token` makes the callback token of an entry and attempt.
    """

    now_ms: int
    draw: Callable[[], float]
    claim: Callable[[int | None], Lease | None]
    clock_error_ms: int
    token: Callable[[int, int], str] = _no_token
