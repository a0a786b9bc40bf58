"""I21: what may happen while an execution is paused, read off its history alone.

Between `Paused` and `Resumed` a line may record what comes to it and enter the next state. It may
not evaluate that state: no lanes open there, no timer is set, no attempt gets a lease, and none is
taken over. When a frozen timer comes is for I6, which knows the true time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.core.events import TERMINAL_EVENTS, Event
from holdfast_simulator.histories import StoredHistory
from holdfast_simulator.invariants.case import Case

#: Each of these events is the evaluation of a state that was entered before.
_EVALUATED: Final = frozenset(
    {
        "ParallelStateStarted",
        "MapStateStarted",
        "MapRunStarted",
        "TimerSet",
        "PassStateExited",
        "Published",
        "Noted",
        "ChoiceStateExited",
        "SucceedStateExited",
        "DeadlineSet",
    }
)


def begun_in_pauses(case: Case) -> Iterator[str]:
    for history in case.histories:
        yield from _of(history)


def _of(history: StoredHistory) -> Iterator[str]:
    paused: Event | None = None
    takeovers: dict[str, int] = {}
    for event in history.events:
        frame = str(event.holdfast.get("frame", ""))
        if event.type == "Paused":
            if paused is not None:
                yield f"{history.run}: it is paused twice"
            paused = event
        elif event.type == "Resumed":
            if paused is None:
                yield f"{history.run}: it is resumed, and was not paused"
            paused = None
        elif event.type in TERMINAL_EVENTS or event.type == "ExecutionForked":
            paused = None
        elif paused is not None and _begins(event, takeovers.get(frame, 0)):
            yield f"{history.run}: {event.type} on line {frame!r} while it is paused"
        if event.type.endswith("Scheduled"):
            takeovers[frame] = 0
        elif event.type == "Claimed":
            takeovers[frame] = int(event.holdfast["takeovers"])


def _begins(event: Event, takeovers: int) -> bool:
    if event.type == "Claimed":
        return int(event.holdfast["takeovers"]) > takeovers
    return event.type in _EVALUATED or (event.type != "Claimed" and "claim" in event.holdfast)
