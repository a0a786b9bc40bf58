"""The child executions of an execution: which of them it waits for, and which it abandoned.

Rules of this file:
* A child is begun from the event that asks for it, and over with the event of its end.
* A child that is not over, and for which no wait is open, is *abandoned*, whatever closed the wait.
  It has to be stopped. It stays abandoned until the event `ChildrenStopped` names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.core.run_ids import child_depth
from holdfast.core.state import ChildNumber, Execution, Frame
from holdfast.core.waits import children_of
from holdfast.limits import CHILD_DEPTH_MAX

TOO_DEEP: Final = "Holdfast.TooDeep"


def awaited(frames: Iterable[Frame]) -> Iterator[ChildNumber]:
    """Yield the child executions that the frames wait for, begun or not."""
    for frame in frames:
        yield from children_of(frame.waiting)


def abandoned(state: Execution) -> list[ChildNumber]:
    """Return children that may run, without an open wait and without a stop."""
    if not state.children:
        return []
    return sorted(state.children.difference(awaited(state.frames.values())))


def too_deep(run: str, what: str) -> str | None:
    """Return the reason why an execution with this id may not start; None when it may.

    `what` names the workflow or state machine. The id of an execution contains the ids of all its
    parents, and ids are keys of bounded length. A start with an id that no worker can read would be
    lost, and all its parents would wait for ever.
    """
    if child_depth(run) <= CHILD_DEPTH_MAX:
        return None
    return f"{what} was called {CHILD_DEPTH_MAX + 1} executions deep: no more may nest"
