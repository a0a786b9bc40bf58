"""Facts: what happened outside of the log, such as a result or a passed timer. The worker that
observed a fact offers it to `advance`.

A fact that does not fit the state (its wait has ended, or its attempt was replaced) has no effect.
So a worker may safely offer it again after a refused commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from holdfast.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Started:
    """The start message. Every worker that reads it sees the same values.

    `refused`: a limit of the workflow, or a pause, does not let the execution begin yet.
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
    """The workflow continues as new: with the newest definition, and this input.

    `refused`: for a later start (`core/later.py`), as that of `Started`.
    """

    entry: int
    attempt: int
    program: Program
    input: Json
    refused: Refused | None = None


@dataclass(frozen=True, slots=True)
class ForkMove:
    """For a fork that continues on another definition: that definition, and the plan from the proof
    that the execution may move to it.
    """

    source: str
    target: str
    plan: Mapping[str, Json]
    program: Program


@dataclass(frozen=True, slots=True)
class Forked:
    """The start message of an execution that begins with a copy of another execution's history.

    `events` are those of the origin, up to the one that entered the state. `data` replaces the
    origin's input; None keeps it. `variables` replace the origin's variables of the same names.
    `move`: the fork continues on another definition; None: on that of the origin.
    """

    started: Started
    events: tuple[Event, ...]
    of: ForkOrigin
    data: tuple[Json] | None
    variables: Mapping[str, Json]
    reason: str
    by: str
    move: ForkMove | None = None

    @property
    def input(self) -> Json:
        """Return the input of the new execution. If the origin is a fork, too, its own input
        counts, and not that of the first execution.
        """
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
    """The result of an attempt, or the answer to a callback or a person's task. `by` is the author
    of an answer, "" for none. `cached`: no attempt was begun, because an earlier call with equal
    arguments has given the result: in which execution, and when.
    """

    entry: int
    attempt: int
    output: Json
    by: str = ""
    cached: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The call of a task has returned, but its result arrives later (callback or job)."""

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
    """The error of an attempt. `traceback` holds the frames of the workflow author's code; only the
    history shows it.
    """

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
    """An event is stored. With `error` it fails the wait, and has no data. `claim`: None when its
    sender has addressed it to this execution; otherwise the claim that it has, "" without one
    (`runtime/event_claims.py`).
    """

    entry: int
    event_id: str
    data: Json
    expires_ms: int
    claim: str | None = None
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatSeen:
    entry: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: everything that is due by `now_ms` minus the clock error happens."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A worker takes over the lease of an attempt. The previous worker has crashed or, with
    `is_handed`, has handed the attempt over.
    """

    entry: int
    attempt: int
    is_handed: bool = False


@dataclass(frozen=True, slots=True)
class TaskUnknown:
    """The code of the worker has no function with the attempt's name."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Refused:
    """An attempt may not begin yet: a limit refused it, or its dependency asked to be called later.

    The attempt waits at the gate that `queued` names. It keeps its number, and no retry is counted.
    Attempt 0 stands for a whole execution that may not begin. `reason` and `by` are those of the
    operator whose pause holds the attempt back; only the history shows them.
    """

    entry: int
    attempt: int
    queued: Queued
    reason: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Granted:
    """The gate `gate` lets a waiting attempt begin: the worker takes its lease."""

    entry: int
    attempt: int
    gate: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Control message: end as ABORTED. `control_id` orders the control messages, and makes a
    message that is stored twice count once.

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

    `by` is the verified identity of the caller. Only the history shows `reason` and `by`. `round`
    is the redrive of the map run that redrives this child of it, 0 for any other request.
    """

    control_id: str
    reason: str | None = None
    by: str | None = None
    round: int = 0


@dataclass(frozen=True, slots=True)
class PauseRequested:
    """Control message: nothing new begins until a resume. `by` is the operator's name as the client
    gave it; for `timers` see `state.Pause`.
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
    """Control message: the execution gets another priority, from 0 (first) to 9 (last). Its
    attempts that wait at a limit move in the queue.
    """

    control_id: str
    priority: int
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class BoundsRequested:
    """Control message: the map run with this entry gets other bounds (`core/bounds.py`). `wanted`
    has only the fields that change.
    """

    control_id: str
    entry: int
    wanted: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SkipRequested:
    """Control message: an operator gives the result of a step that is open, or whose failure has
    ended the execution.

    `frame` and `entered_event` name one visit of a state. In a loop, a later visit of the same
    state has another event. `output` is None for a timer, which has no result.
    """

    control_id: str
    frame: str
    entered_event: int
    output: Json
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class MigrateRequested:
    """Control message: the execution continues with another definition, from its present place.

    `source` and `target` are the hashes of the two definitions. `visits` maps each frame to the
    event that had entered its state when the migration was proven safe. `plan` says how the state
    is carried over (`migration/model.py`). `program` is that of the target; the worker adds it.
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
    """A worker has sent stops to these child executions, which no wait needs."""

    children: tuple[ChildNumber, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """From the record `sequence` on, a watchdog row and a list entry protect the execution, and its
    start message may be deleted. A later `Opened` moves its place in the list to a younger record.
    """

    sequence: int


#: The facts about one attempt or one wait, which `attempt_facts` uses.
AttemptFact: TypeAlias = (
    Succeeded
    | Submitted
    | Renewed
    | ActivityStarted
    | Polled
    | FailedWith
    | TimedOut
    | EventReceived
    | HeartbeatSeen
    | TakenOver
    | TaskUnknown
    | Refused
    | Granted
)

#: The requests that an operator or a parent execution stores in the inbox of an execution.
Control: TypeAlias = (
    StopRequested
    | RedriveRequested
    | PauseRequested
    | ResumeRequested
    | PriorityRequested
    | BoundsRequested
    | SkipRequested
    | MigrateRequested
)

Fact: TypeAlias = (
    Started | Forked | Tick | ChildEnded | ChildrenStopped | Opened | AttemptFact | Control
)


def _no_token(entry: int, attempt: int) -> str:
    raise HoldfastBug(
        f"the decision needs the callback token of {entry}.{attempt}, and its inputs have none"
    )


#: A function that gets the target of a task and its arguments.
Misuse: TypeAlias = Callable[[str, Json], str | None]


def no_misuse(_target: str, _arguments: Json) -> None:
    return None


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """Time, random numbers, leases and tokens of one decision.

    `draw()` returns a number in [0, 1) that depends only on the execution and the record. `claim`
    creates the lease of an attempt that is scheduled now, from its time-out in seconds; if it
    returns None, another worker runs the attempt. `token` creates the callback token of an entry
    and attempt. `misuse` says why an action of a service cannot be called with these arguments;
    None: it can, or only the call itself shows it.
    """

    now_ms: int
    draw: Callable[[], float]
    claim: Callable[[int | None], Lease | None]
    clock_error_ms: int
    token: Callable[[int, int], str] = _no_token
    misuse: Misuse = no_misuse
