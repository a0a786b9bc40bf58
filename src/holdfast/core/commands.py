"""The commands of an execution to its surroundings: one class for each kind.

`holdfast.core.waits` says which commands a wait needs and collects them for a whole execution.
`holdfast.runtime.follow_ups` carries them out. A command may be carried out twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.core.state import Attempt, Queued


@dataclass(frozen=True, slots=True)
class RunAttempt:
    """Run the task, unless another worker holds a valid lease on it."""

    frame: str
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Request a wake of the execution at `due_ms`."""

    entry: int
    due_ms: int


@dataclass(frozen=True, slots=True)
class RegisterForEvent:
    """Register the execution for the entry's event, then read the events that are stored."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class StartChild:
    """Start the execution that is one lane of a distributed Map; it may have begun already."""

    entry: int
    lane: int


@dataclass(frozen=True, slots=True)
class StopChild:
    """Stop a child that no wait needs. `number` is that of `state.ChildNumber`."""

    entry: int
    number: int


@dataclass(frozen=True, slots=True)
class OfferActivity:
    """Add the task to the list that the activity's pollers read."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Read an answer that may have been stored before the call that requested it returned."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """Put the question into the inbox of its assignee. The worker removes the question when its
    wait ends.
    """

    entry: int
    attempt: int
    title: str
    assignee: str
    since_ms: int
    due_ms: int | None


@dataclass(frozen=True, slots=True)
class JoinQueue:
    """Put the attempt into the queue of a gate, and see that the gate's queue is served.

    `priority` and `started_ms` are the execution's: they are its place in the queue.
    `run_seconds` is how long the attempt may hold a permit.
    """

    entry: int
    attempt: int
    queued: Queued
    priority: int
    started_ms: int
    run_seconds: int | None


#: The entry number that stands for the execution's own time-out.
WHOLE_EXECUTION: Final = -1

Command: TypeAlias = (
    RunAttempt
    | JoinQueue
    | OpenQuestion
    | StartTimer
    | RegisterForEvent
    | StartChild
    | StopChild
    | OfferActivity
    | ReadAnswer
)


def entry_of(command: Command) -> int:
    return command.attempt.entry if isinstance(command, RunAttempt) else command.entry
