"""The moment of the last fault: what was open then, in whose hands, and how soon it ended.

All that was accepted by then ends within a minute of it, what was accepted later within a minute
of that. A bound proves nothing where nothing could have missed it: that something was open, timers
overdue, attempts claimed, in frozen and in dead hands is part of what is judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from holdfast.core.state import Attempt, Awaiting, Delay, Execution, Frame, Timer
from tests.process.chaos import Harm
from tests.process.evidence import Log
from tests.process.ledger import Begun, attempt_of, by_attempt
from tests.process.scene import Scene, root_of

END_SECONDS: Final = 60
#: Faults that end together do so within this time.
TOGETHER_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Open:
    """An accepted execution that had not ended. `state` is None if it had no record."""

    run: str
    state: Execution | None
    ended_at: float | None


@dataclass(frozen=True)
class AtLast:
    """The open executions at the last fault, and their waits."""

    scene: Scene

    @cached_property
    def opened(self) -> list[Open]:
        logs, last_at = self.scene.found.logs, self.scene.last_at
        begun = {run for run, at in self.scene.accepted.items() if at <= last_at}
        found = [self._as_it_was(run, logs.get(run)) for run in sorted(begun | logs.keys())]
        return [one for one in found if _was_open(one, begun)]

    def _as_it_was(self, run: str, log: Log | None) -> Open:
        if log is None:
            return Open(run, None, None)
        state = self.scene.state_at(log, self.scene.last_at)
        return Open(run, state, self.scene.ended_at(log))

    @cached_property
    def frames(self) -> list[tuple[str, Frame]]:
        """Each line of control, and of which execution it is."""
        return [
            (one.run, frame)
            for one in self.opened
            if one.state is not None
            for frame in one.state.frames.values()
        ]

    @property
    def timers_due_ms(self) -> list[int]:
        dues = (_timer_due_ms(frame) for _, frame in self.frames)
        return [due_ms for due_ms in dues if due_ms is not None]

    @property
    def overdue(self) -> int:
        return sum(due_ms <= self.scene.last_at * 1_000 for due_ms in self.timers_due_ms)

    @property
    def waits(self) -> int:
        return sum(isinstance(frame.waiting, Awaiting) for _, frame in self.frames)

    @cached_property
    def attempts(self) -> dict[str, Attempt]:
        """Return the attempts that were due or running."""
        return {
            attempt_of(run, frame.waiting.entry, frame.waiting.attempt): frame.waiting
            for run, frame in self.frames
            if isinstance(frame.waiting, Attempt)
        }

    @property
    def claimed(self) -> int:
        return sum(attempt.claim is not None for attempt in self.attempts.values())

    @property
    def in_frozen_hands(self) -> int:
        since = self.scene.last_at - TOGETHER_SECONDS
        return self._in_hands("freeze", since)

    @property
    def in_dead_hands(self) -> int:
        return self._in_hands("kill", 0.0)

    def _in_hands(self, kind: str, since: float) -> int:
        """Return how many attempts had begun, without a result, where such a fault was
        over since.
        """
        harms = [h for h in self.scene.harms if h.kind == kind and h.ended_at >= since]
        begun = by_attempt(one for one in self.scene.ledger if one.at <= self.scene.last_at)
        # The first task of an execution runs before its first record.
        unwritten = {attempt_of(one.run, 0, 1) for one in self.opened if one.state is None}
        running = (self.attempts.keys() | unwritten) & begun.keys()
        return sum(any(_was_in_it(h, begun[attempt][-1]) for h in harms) for attempt in running)

    def ends(self) -> list[float]:
        """Return seconds after the last fault, the slowest first."""
        ends = (one.ended_at - self.scene.last_at for one in self.opened if one.ended_at)
        return sorted(ends, reverse=True)


def _was_open(one: Open, begun: set[str]) -> bool:
    if one.state is None:
        return one.run in begun  # of a child nothing is known before its first record
    return not one.state.is_ended


def _was_in_it(harm: Harm, begun: Begun) -> bool:
    """Return True when the fault hit this process. Numbers of processes are reused, so an earlier
    crash may be of another process.
    """
    return harm.pid == begun.pid and harm.ended_at >= begun.at


def _timer_due_ms(frame: Frame) -> int | None:
    """Return when a wait, or the pause before another attempt, was to end."""
    match frame.waiting:
        case Timer(_, due_ms) | Delay(_, due_ms):
            return due_ms
        case Attempt(claim=None, attempt=attempt, due_ms=due_ms) if attempt > 1:
            return due_ms
        case _:
            return None


# -- report and judgement --------------------------------------------------------------------------


def figures(scene: Scene) -> dict[str, Any]:
    at_last = AtLast(scene)
    ends = at_last.ends()
    return {
        "open at the last fault": len(at_last.opened),
        "of them children": sum("." in one.run for one in at_last.opened),
        "of them accepted, without a record": sum(one.state is None for one in at_last.opened),
        "timers that were overdue then": at_last.overdue,
        "timers that were to come then": len(at_last.timers_due_ms) - at_last.overdue,
        "waits for people, events and children then": at_last.waits,
        "attempts claimed then": at_last.claimed,
        "attempts in frozen hands then": at_last.in_frozen_hands,
        "attempts in dead hands then": at_last.in_dead_hands,
        "slowest end of these, seconds after": round(ends[0], 1) if ends else None,
        "median end of these, seconds after": round(ends[len(ends) // 2], 1) if ends else None,
    }


def violations(scene: Scene) -> Iterator[tuple[str, str]]:
    """Yield execution, or "the last fault", and the violation."""
    yield from _late(scene)
    at_last = AtLast(scene)
    kinds = {harm.kind for harm in scene.harms}
    there = {
        "no execution was open": bool(at_last.opened),
        "no timer was overdue": at_last.overdue > 0,
        "no attempt was claimed": at_last.claimed > 0,
        "no attempt was in frozen hands": at_last.in_frozen_hands > 0 or "freeze" not in kinds,
        "no attempt was in dead hands": at_last.in_dead_hands > 0 or "kill" not in kinds,
    }
    for text, is_there in there.items():
        if not is_there:
            yield "the last fault", f"{text} at that moment, so the bound says nothing"


def _late(scene: Scene) -> Iterator[tuple[str, str]]:
    for log in scene.found.logs.values():
        since = max(scene.last_at, scene.accepted[root_of(log.run)])
        ended_at = scene.ended_at(log)
        if ended_at is None:
            yield log.run, f"it has not ended: {log.state.workflow}"
        elif ended_at - since > END_SECONDS:
            late = f"{ended_at - since:.0f} s after the last fault and its start"
            yield log.run, f"it ended {late}: {log.state.workflow}"
