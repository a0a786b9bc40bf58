"""The commands: the work outside of the log that the state of an execution requires, such as a
timer or the run of a task. One class for each kind.

`holdfast.core.waits` says which commands a wait needs and collects them for a whole execution.
`holdfast.runtime.follow_ups` carries them out. A worker may crash and repeat a command, so each
command is safe to carry out twice.
"""

from __future__ import annotations

import json
from typing import Final, TypeAlias

from holdfast.asl.program import Json
from holdfast.core.state import Attempt, Queued
from holdfast.lazy_dataclass import dataclass


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
    """Register the execution for the event that the entry waits for, then read the stored
    events.
    """

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class StartChild:
    """Start the child execution of one lane of a distributed Map. It may have been started
    already. `redrives` is that of its map run: after a redrive the child may be redriven instead.
    """

    entry: int
    lane: int
    redrives: int = 0


@dataclass(frozen=True, slots=True)
class StopChild:
    """Stop a child execution that no wait needs. `entry` and `number` identify it
    (`state.ChildNumber`).
    """

    entry: int
    number: int


@dataclass(frozen=True, slots=True)
class OfferActivity:
    """Add the task to the list that the activity's pollers read."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Read the answer to a call. It may have been stored before the call returned, when no wait
    read it.
    """

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """Put the question into the inbox of its assignee. A worker removes the question when the wait
    ends.
    """

    entry: int
    attempt: int
    title: str
    assignee: str
    since_ms: int
    due_ms: int | None


@dataclass(frozen=True, slots=True)
class JoinQueue:
    """Put the attempt into the queue of a gate (a limit), and make sure that a worker serves the
    queue.

    `priority` and `started_ms` are those of the execution: they decide the attempt's place in the
    queue. `run_seconds` is how long the attempt may hold a permit.
    """

    entry: int
    attempt: int
    queued: Queued
    priority: int
    started_ms: int
    run_seconds: int | None


#: Stands for an entry number in the command of the execution's own time-out, which belongs to no
#: entry.
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


def argument_text(arguments: Json, parameter: str) -> str:
    """Return the value of one argument of a task as text, for example as the key of its limit: a
    text as it is, other values as JSON.
    """
    value = arguments.get(parameter) if isinstance(arguments, dict) else None
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
