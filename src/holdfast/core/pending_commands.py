"""What the world owes an execution: a function of its state, so nothing else has to remember it.

After a commit the worker carries out what the new entries ask for; a recovering worker carries out
everything that is owed. All of these may be done twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from holdfast.core.children import abandoned
from holdfast.core.state import (
    Attempt,
    Awaiting,
    ChildExecutions,
    Delay,
    Entered,
    Execution,
    Frame,
    Timer,
)


@dataclass(frozen=True, slots=True)
class RunAttempt:
    """Run the task, unless somebody else's claim on it holds."""

    frame: str
    attempt: Attempt


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Wake the execution at `due_ms`."""

    entry: int
    due_ms: int


@dataclass(frozen=True, slots=True)
class RegisterForEvent:
    """Enter the execution with those who wait for the entry's event, then look for stored ones."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class StartChild:
    """Start the execution that is one lane of a distributed Map; it may have begun already."""

    entry: int
    lane: int


@dataclass(frozen=True, slots=True)
class StopChild:
    """Tell a child to stop: nobody waits for it any more. `number` as in `state.Child`."""

    entry: int
    number: int


@dataclass(frozen=True, slots=True)
class OfferActivity:
    """Put the task where those who poll the activity find it."""

    entry: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Look whether the answer came before its call was over: its wake may have been too early."""

    entry: int
    attempt: int


#: The entry of the execution's own time-out.
WHOLE_EXECUTION: Final = -1

Command: TypeAlias = (
    RunAttempt | StartTimer | RegisterForEvent | StartChild | StopChild | OfferActivity | ReadAnswer
)


def pending_commands(state: Execution) -> list[Command]:
    """-> every command that the state asks for, in the order of its entries."""
    return [command for _, command in sorted(_owed(state), key=lambda pair: pair[0])]


def entry_of(command: Command) -> int:
    return command.attempt.entry if isinstance(command, RunAttempt) else command.entry


def _owed(state: Execution) -> Iterator[tuple[int, Command]]:
    if state.due_ms is not None and not state.is_ended:
        yield WHOLE_EXECUTION, StartTimer(WHOLE_EXECUTION, state.due_ms)
    for frame in state.frames.values():
        for command in _of_frame(frame):
            yield entry_of(command), command
    for entry, number in abandoned(state):
        yield entry, StopChild(entry, number)


def _of_frame(frame: Frame) -> Iterator[Command]:
    for deadline in frame.deadlines:
        yield StartTimer(deadline.entry, deadline.due_ms)
    match frame.waiting:
        case Attempt() as attempt:
            yield RunAttempt(frame.id, attempt)
        case Timer(entry, due_ms) | Delay(entry, due_ms):
            yield StartTimer(entry, due_ms)
        case Awaiting() as awaiting:
            yield from _of_wait(awaiting)
            due = min((due for due in _dues_of(frame) if due is not None), default=None)
            if due is not None:
                yield StartTimer(awaiting.entry, due)
        case ChildExecutions() as children:
            for lane in children.open_lanes:
                yield StartChild(children.entry, lane)
        case _:
            return


def _of_wait(awaiting: Awaiting) -> Iterator[Command]:
    match awaiting.kind:
        case "event":
            yield RegisterForEvent(awaiting.entry, awaiting.attempt)
        case "activity" if not awaiting.is_begun:
            yield OfferActivity(awaiting.entry, awaiting.attempt)
        case "callback" | "sync":
            yield ReadAnswer(awaiting.entry, awaiting.attempt)
        case _:
            return


def next_due_ms(frame: Frame) -> int | None:
    """-> when time alone changes something here, or None."""
    dues = (*_dues_of(frame), *(deadline.due_ms for deadline in frame.deadlines))
    return min((due for due in dues if due is not None), default=None)


def _dues_of(frame: Frame) -> tuple[int | None, ...]:
    match frame.waiting:
        case Timer(_, due_ms) | Delay(_, due_ms):
            return (due_ms,)
        case Attempt() as attempt:
            is_free = attempt.claim is None and not attempt.is_unknown
            return (attempt.due_ms,) if is_free else ()
        case Awaiting() as awaiting:
            return (awaiting.due_ms, awaiting.heartbeat_due_ms, awaiting.poll_due_ms)
        case _:
            return ()


def has_more(state: Execution) -> bool:
    """A record ended before the execution settled: whoever loads it goes on from here first."""
    return any(isinstance(frame.waiting, Entered) for frame in state.frames.values())
