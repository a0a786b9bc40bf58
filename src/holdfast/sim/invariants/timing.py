"""I6, I8: when things happen."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.sim.histories import History
from holdfast.sim.invariants.case import Case


def never_early(case: Case) -> Iterator[str]:
    for history in case.histories:
        yield from _timers(history)


def _timers(history: History) -> Iterator[str]:
    due: dict[str, int] = {}
    for event in history.events:
        frame = event.holdfast.get("frame", "")
        if event.type == "TimerSet":
            due[frame] = event.holdfast["due"]
        elif event.type == "WaitStateExited" and event.at_ms < due.pop(frame, 0):
            yield f"{history.run}: a timer fired early at {event.at_ms}"


def one_wins(case: Case) -> Iterator[str]:
    del case
    yield from ()
