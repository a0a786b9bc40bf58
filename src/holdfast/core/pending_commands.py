"""The commands that an execution asks for: a function of its state, so nothing else records them.

After a commit the worker carries out the commands that the new state asks for and the old one did
not. A recovering worker carries out all of them. Each may be carried out twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.children import abandoned
from holdfast.core.commands import WHOLE_EXECUTION, Command, StartTimer, StopChild, entry_of
from holdfast.core.state import Entered, Execution, Frame, Pause
from holdfast.core.waits import DueKind, commands_of, dues_of, runs_on, stays_asked


def pending_commands(state: Execution) -> list[Command]:
    """Return every command that the state asks for, in the order of its entries."""
    found: list[Command] = []
    if state.due_ms is not None and not state.is_ended:
        found.append(StartTimer(WHOLE_EXECUTION, state.due_ms))
    for frame in state.frames.values():
        found.extend(commands_of(frame, state))
    found.extend(StopChild(entry, number) for entry, number in abandoned(state))
    pause = state.paused
    if pause is not None:
        found = [command for command in found if stays_asked(command, pause)]
    if len(found) > 1:
        found.sort(key=entry_of)
    return found


def next_dues(state: Execution) -> Iterator[int]:
    """Yield for each frame, and for the execution itself, when time alone changes
    something next.
    """
    pause = state.paused
    if pause is not None and pause.is_frozen:
        return
    if state.due_ms is not None:
        yield state.due_ms
    for frame in state.frames.values():
        due_ms = next_due_ms(frame, pause)
        if due_ms is not None:
            yield due_ms


def next_due_ms(frame: Frame, pause: Pause | None = None) -> int | None:
    """Return the time at which time alone changes something in the frame, or None.

    The lapse of a lease changes nothing by itself: the sweeper checks for it.
    """
    if pause is not None and pause.is_frozen:
        return None
    dues_ms = [deadline.due_ms for deadline in frame.deadlines]
    dues_ms += [
        due_ms
        for kind, due_ms in dues_of(frame.waiting)
        if kind != DueKind.LEASE and runs_on(kind, pause)
    ]
    return min(dues_ms, default=None)


def has_more(state: Execution) -> bool:
    """A record ended before the execution settled: the next worker continues from here first.

    A paused execution evaluates no state.
    """
    if state.paused is not None:
        return False
    return any(isinstance(frame.waiting, Entered) for frame in state.frames.values())
