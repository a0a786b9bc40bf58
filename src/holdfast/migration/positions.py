"""Computes the position of an execution from its state."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from holdfast.core.state import (
    ROOT,
    Admission,
    Attempt,
    Awaiting,
    ChildExecutions,
    Delay,
    Entered,
    Execution,
    Exited,
    FailedState,
    Frame,
    Lanes,
    Timer,
)
from holdfast.migration.model import Line, Position, Standing
from holdfast.migration.version import Version


def position_of(state: Execution, version: Version) -> Position:
    """Return the position of the execution. `version` is the definition that it has now."""
    lines = [_line(state, frame, version) for frame in state.frames.values()]
    root = [
        line for line, frame in zip(lines, state.frames.values(), strict=True) if frame.id == ROOT
    ]
    others = {line for line in lines if line not in root}
    return Position(state.definition, (*root, *sorted(others, key=_order)), _unready(state))


def position_of_fork(begun: Execution, version: Version) -> Position:
    """Return the position of a fork that begins with this state: before a step that then runs from
    its beginning. `version`: the definition of the origin.
    """
    (frame,) = begun.frames.values()
    line = replace(_line(begun, frame, version), standing="again")
    return Position(begun.definition, (line,), "")


def _order(line: Line) -> tuple[object, ...]:
    return line.state, line.lane is None, line.lane or 0, line.standing, line.variables


def _unready(state: Execution) -> str:
    """Return why the execution cannot move now, whatever the definitions are."""
    if state.is_ended:
        return f"it has ended as {state.status}"
    if state.origin is not None:
        return "it is an execution of a state machine, which is changed by its own API"
    if state.stopping is not None or any(
        frame.cancelled is not None for frame in state.frames.values()
    ):
        return "it is undoing its work"
    for frame in state.frames.values():
        match frame.waiting:
            case Entered() | Exited() | FailedState():
                return f"it is between two steps, at {frame.position}: ask again in a moment"
            case Admission():
                return "it has not begun: a limit of its workflow holds it back"
            case ChildExecutions():
                return f"{frame.position} runs its items as executions of their own"
            case Lanes(closing=closing) if closing is not None:
                return f"{frame.position} is being closed: ask again in a moment"
            case _:
                continue
    return ""


def _line(state: Execution, frame: Frame, version: Version) -> Line:
    lanes = frame.waiting if isinstance(frame.waiting, Lanes) else None
    ended = () if lanes is None else tuple(sorted(lanes.results))
    waiting = () if lanes is None else tuple(range(lanes.started, lanes.count))
    owner = None if frame.owner is None else state.frames[frame.owner].waiting
    is_branch = isinstance(owner, Lanes) and owner.items is None
    return Line(
        state=frame.position,
        standing=_standing(frame),
        lane=frame.lane if is_branch else None,
        count=0 if lanes is None else lanes.count,
        ended=ended,
        waiting=waiting,
        variables=tuple(sorted(_visible(state, frame))),
        deadlines=tuple(sorted(due.number for due in frame.deadlines)),
        undo=tuple(sorted(_registered(frame, version))),
    )


def _standing(frame: Frame) -> Standing:
    match frame.waiting:
        case Attempt(queued=queued) if queued is not None:
            return "limit"
        case Attempt(claim=claim, attempt=attempt):
            return "running" if claim is not None or attempt == 1 else "retry"
        case Awaiting(kind="event"):
            return "event"
        case Awaiting(kind="ask"):
            return "ask"
        case Awaiting(kind="token"):
            return "token"
        case Awaiting():
            return "answer"
        case Timer():
            return "timer"
        case Lanes():
            return "lanes"
        case Delay():
            return "again"
        case Entered() | Exited() | FailedState() | Admission() | ChildExecutions():
            # `_unready` gives a more precise reason for these.
            return "running"
        case _:
            assert_never(frame.waiting)


def _visible(state: Execution, frame: Frame) -> set[str]:
    around = set() if frame.owner is None else _visible(state, state.frames[frame.owner])
    return around | set(frame.variables)


def _registered(frame: Frame, version: Version) -> set[str]:
    """Return the tasks that are registered for an undo on this line."""
    if frame.position not in version.places:
        return set()
    names = (version.undo_list(undo) for undo in version.undo_scopes(frame.position))
    lists = (frame.variables.get(name) for name in names if name is not None)
    return {
        str(step["task"])
        for steps in lists
        if isinstance(steps, list)
        for step in steps
        if isinstance(step, dict) and "task" in step
    }
